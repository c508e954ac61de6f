package pdksql

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/hako-run/hako/pdk/abi"
)

func invalidf(format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeInvalid, format, args...)
}

// parameters converts arguments to the types of abi.SQLStatement.
func parameters(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := parameter(arg)
		if err != nil {
			return nil, invalidf("parameter %d: %v", i+1, err)
		}
		values[i] = value
	}
	return values, nil
}

func parameter(arg any) (any, error) {
	switch v := arg.(type) {
	case nil:
		return nil, nil
	case string, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case bool:
		return boolValue(v), nil
	case []byte:
		if v == nil {
			return nil, nil
		}
		return v, nil
	case json.RawMessage:
		if v == nil {
			return nil, nil
		}
		return string(v), nil
	}
	return convert(reflect.ValueOf(arg))
}

func boolValue(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// convert converts types that parameter does not handle.
func convert(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.Pointer:
		return parameter(v.Elem().Interface())
	case reflect.Bool:
		return boolValue(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, fmt.Errorf("%d is more than SQL's largest integer, %d", v.Uint(), math.MaxInt64)
		}
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return parameter(v.Bytes())
		}
	}
	return nil, fmt.Errorf("a %s is not an SQL value: encode it, as text or as []byte", v.Type())
}
