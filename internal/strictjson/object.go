package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
)

// CheckObject reports why text is not a JSON object, or is ambiguous. The error continues a sentence about the text.
func CheckObject(text []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return fmt.Errorf(`are not a JSON object such as '{"name":"value"}': %w`, problem(text, err))
	}
	if err := Check(text); err != nil {
		return fmt.Errorf("are ambiguous: %w", err)
	}
	return nil
}

// problem adds to the error err of json.Unmarshal its position in text.
func problem(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d of %d: %w", syntax.Offset, len(text), err)
	case errors.As(err, &kind):
		return fmt.Errorf("they are a JSON %s", kind.Value)
	case err == nil:
		return errors.New("they are null")
	}
	return err
}
