package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// decodeEvent decodes JSON of a provider. Servers differ, so the types below accept every form with a certain meaning.
// A member of any other type is an error: skipped, it would look like a missing one, and a call would run without its
// arguments or a budget would never end.
func decodeEvent(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return newMisfit(other)
	}
	return fmt.Errorf("%w: %w", errMalformed, err)
}

// misfitError is a member of a response that has a type without meaning there. Its text has no part of the response.
type misfitError struct{ member, kind string }

func newMisfit(err *json.UnmarshalTypeError) *misfitError {
	kind, _, _ := strings.Cut(err.Value, " ") // "number" of "number 1.5"
	return &misfitError{err.Field, kind}
}

func (e *misfitError) Error() string {
	if e.member == "" {
		return "its response violates the API: an event must be an object, not " + e.kind
	}
	return fmt.Sprintf("its response violates the API: %s must not be of the type %s", e.member, e.kind)
}

// kindsOf names the JSON types by the first byte of a value. Others are numbers.
var kindsOf = map[byte]string{'{': "object", '[': "array", '"': "string", 't': "bool", 'f': "bool"}

// misfit is the error of an UnmarshalJSON, to which package json adds the member.
func misfit(data []byte) error {
	kind := kindsOf[data[0]]
	if kind == "" {
		kind = "number"
	}
	return &json.UnmarshalTypeError{Value: kind, Type: reflect.TypeFor[string]()}
}

func isNull(data []byte) bool { return string(data) == "null" }

// jsonText is a string. Some servers send a number, such as an ID or a code.
type jsonText string

func (t *jsonText) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(t))
	case '{', '[', 't', 'f':
		return misfit(data)
	}
	if !isNull(data) {
		*t = jsonText(data)
	}
	return nil
}

// jsonCount is a number of tokens or an index. Some servers send it as text or with a fraction of zero.
type jsonCount int64

func (c *jsonCount) UnmarshalJSON(data []byte) error {
	digits := string(data)
	if data[0] == '"' {
		if err := json.Unmarshal(data, &digits); err != nil {
			return err
		}
		digits = strings.TrimSpace(digits)
	}
	if digits == "" || isNull(data) {
		return nil
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		*c = jsonCount(n)
		return nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	if err != nil || f != math.Trunc(f) { // NaN is not equal to itself
		return misfit(data)
	}
	*c = jsonCount(min(max(f, -1), math.MaxInt32))
	return nil
}

// jsonArguments are those of a call: text that is JSON. Some servers send the object itself. Other values are kept as
// well, so that the model is told what is wrong with them.
type jsonArguments string

func (a *jsonArguments) UnmarshalJSON(data []byte) error {
	switch {
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(a))
	case !isNull(data):
		*a = jsonArguments(data)
	}
	return nil
}

// jsonContent is the text of a message: a string, or a list of parts of which those of other types than text are left out,
// such as thoughts.
type jsonContent string

func (c *jsonContent) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '[':
		var parts []json.RawMessage
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, part := range parts {
			if err := c.add(part); err != nil {
				return err
			}
		}
		return nil
	case '{':
		return c.add(data)
	}
	return (*jsonText)(c).UnmarshalJSON(data)
}

// add appends the text of a part: an object with a type, or a string.
func (c *jsonContent) add(data []byte) error {
	data = bytes.TrimSpace(data)
	if data[0] != '{' {
		var whole jsonText
		err := whole.UnmarshalJSON(data)
		*c += jsonContent(whole)
		return err
	}
	var head struct{ Type jsonText }
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Type != "" && head.Type != "text" && head.Type != "output_text" {
		return nil
	}
	var part struct{ Text jsonText }
	err := json.Unmarshal(data, &part)
	*c += jsonContent(part.Text)
	return err
}
