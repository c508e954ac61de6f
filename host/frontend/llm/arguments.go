package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/internal/strictjson"
)

// newCall parses the arguments that a model wrote. An empty string and null are an empty object. A JSON string that has an
// object is that object: some servers encode arguments twice.
func newCall(id, name, arguments string) Call {
	call := Call{ID: id, Name: name, Arguments: json.RawMessage("{}")}
	text := bytes.TrimSpace([]byte(arguments))
	if len(text) == 0 {
		return call
	}
	if inner := ""; text[0] == '"' && json.Unmarshal(text, &inner) == nil &&
		strings.HasPrefix(strings.TrimSpace(inner), "{") {
		text = bytes.TrimSpace([]byte(inner))
	}
	var object map[string]json.RawMessage
	switch err := strictjson.Unmarshal(text, &object); {
	case err != nil:
		call.Invalid = fmt.Sprintf("The arguments are not a JSON object (%v). Call the tool again with valid JSON.",
			err)
	case object != nil:
		call.Arguments = text
	}
	return call
}

// endCalls marks the last call of a truncated response as invalid: truncated arguments may be valid JSON by chance.
func (r *Response) endCalls() {
	if n := len(r.Calls); r.Stop == StopLength && n > 0 && r.Calls[n-1].Invalid == "" {
		r.Calls[n-1].Arguments = json.RawMessage("{}")
		r.Calls[n-1].Invalid = "The call was cut off because the answer grew too long. Call the tool again with less."
	}
}
