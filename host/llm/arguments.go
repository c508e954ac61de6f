package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// newCall makes a Call of what a model wrote as arguments: nothing at all is an empty object.
func newCall(id, name, arguments string) Call {
	call := Call{ID: id, Name: name, Arguments: json.RawMessage("{}")}
	text := bytes.TrimSpace([]byte(arguments))
	if len(text) == 0 {
		return call
	}
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(text, &object); {
	case err != nil:
		call.Invalid = fmt.Sprintf("The arguments are not a JSON object (%v). Call the tool again with valid JSON.", err)
	case object == nil:
		call.Invalid = "The arguments are null instead of a JSON object. Call the tool again with valid JSON."
	default:
		call.Arguments = text
	}
	return call
}
