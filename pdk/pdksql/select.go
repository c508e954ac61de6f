package pdksql

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Select runs a statement and returns its rows as values of T.
//
// If T is a struct, each column is assigned to the field with that name in its json tag, or else with that Go name. A
// column without a field is an error; fields without a column stay zero; embedded structs are handled as in
// encoding/json. Any other T takes a single column. A bool takes 0 and 1; an integer takes integers in its range; a
// float any number; a string or a json.RawMessage text; a []byte a blob; an encoding.TextUnmarshaler such as time.Time
// text; a pointer also NULL; an any everything. Other values are an error that names the column. Without rows the slice
// is empty, not nil.
func Select[T any](ctx context.Context, query string, args ...any) ([]T, error) {
	rows, err := Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	paths, err := fieldPaths(reflect.TypeFor[T](), rows.Columns)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(rows.Values))
	for i, row := range rows.Values {
		target := reflect.ValueOf(&list[i]).Elem()
		for j, value := range row {
			place := target
			if paths != nil {
				place = target.FieldByIndex(paths[j])
			}
			if err := assign(place, value); err != nil {
				return nil, invalidf("row %d, column %s: %v", i+1, rows.Columns[j], err)
			}
		}
	}
	return list, nil
}

// fieldPaths returns the field index of each column in a struct; nil if t takes a single column.
func fieldPaths(t reflect.Type, columns []string) ([][]int, error) {
	if !isRecord(t) {
		if len(columns) != 1 {
			return nil, invalidf("a %s takes one column, and the statement gives %d: select into a struct", t,
				len(columns))
		}
		return nil, nil
	}
	fields := map[string][]int{}
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag == "-" || field.Anonymous && tag == "" || embeddedPointer(t, field.Index) {
			continue
		}
		if tag == "" {
			tag = field.Name
		}
		if _, taken := fields[tag]; !taken {
			fields[tag] = field.Index
		}
	}
	paths := make([][]int, len(columns))
	for i, column := range columns {
		path, ok := fields[column]
		if !ok {
			return nil, invalidf("the column %q has no field in %s: tag one with `json:%q`, or name the columns that "+
				"you want",
				column, t, column)
		}
		paths[i] = path
	}
	return paths, nil
}

// isRecord reports whether t is a struct with a field per column.
func isRecord(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// embeddedPointer reports whether a promoted field is reached through an embedded pointer, which may be nil.
func embeddedPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// assign assigns an SQL value to place.
func assign(place reflect.Value, value any) error {
	if place.Kind() == reflect.Interface && place.NumMethod() == 0 {
		if value != nil {
			place.Set(reflect.ValueOf(value))
		}
		return nil
	}
	if place.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		place.Set(reflect.New(place.Type().Elem()))
		return assign(place.Elem(), value)
	}
	fits := false
	switch v := value.(type) {
	case nil:
		return fmt.Errorf("is NULL, which a %s cannot hold: use a pointer, or COALESCE", place.Type())
	case int64:
		fits = assignInteger(place, v)
	case float64:
		if fits = place.CanFloat(); fits {
			place.SetFloat(v)
		}
	case string:
		return assignText(place, v)
	case []byte:
		if fits = place.Kind() == reflect.Slice && place.Type().Elem().Kind() == reflect.Uint8; fits {
			place.SetBytes(v)
		}
	}
	if !fits {
		return fmt.Errorf("a %s cannot hold %s", place.Type(), describe(value))
	}
	return nil
}

func assignInteger(place reflect.Value, n int64) bool {
	switch {
	case place.Kind() == reflect.Bool && (n == 0 || n == 1):
		place.SetBool(n == 1)
	case place.CanInt() && !place.OverflowInt(n):
		place.SetInt(n)
	case place.CanUint() && n >= 0 && !place.OverflowUint(uint64(n)):
		place.SetUint(uint64(n))
	case place.CanFloat():
		place.SetFloat(float64(n))
	default:
		return false
	}
	return true
}

func assignText(place reflect.Value, text string) error {
	if u, ok := place.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case place.Kind() == reflect.String:
		place.SetString(text)
	case place.Type() == reflect.TypeFor[json.RawMessage]():
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("is not JSON")
		}
		place.SetBytes([]byte(text))
	default:
		return fmt.Errorf("a %s cannot hold text", place.Type())
	}
	return nil
}

func describe(value any) string {
	if b, ok := value.([]byte); ok {
		return fmt.Sprintf("a blob of %d bytes", len(b))
	}
	return fmt.Sprint(value)
}
