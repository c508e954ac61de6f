package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// apiError is the error object of the APIs (developers.openai.com/api/docs/guides/error-codes,
// platform.claude.com/docs/en/api/errors). Anthropic's has no code and no parameter.
type apiError struct {
	Code    words `json:"code"`
	Type    words `json:"type"`
	Param   words `json:"param"`
	Message words `json:"message"`
	// Detail is the message of servers made with FastAPI.
	Detail words `json:"detail"`
}

// words is a member of an error. One of another type than string is kept as JSON, because whatever has come is an error.
type words string

func (w *words) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	*w = words(s)
	return nil
}

// parseAPIError parses an error object, including the variants of OpenAI-compatible servers: in an array, with or without
// an "error" member, as a string, with numeric codes, and as plain text. Missing fields are empty.
func parseAPIError(body []byte) (f apiError) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // of Gemini's API
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) == nil && len(outer.Error) > 0 && !isNull(outer.Error) {
		body = outer.Error
	}
	if json.Unmarshal(body, &f) != nil {
		f = apiError{}
		if err := json.Unmarshal(body, &f.Message); err != nil {
			f.Message = words(bytes.TrimSpace(body))
		}
	}
	f.Message = cmp.Or(f.Message, f.Detail)
	return f
}

func (w words) contains(text string) bool { return strings.Contains(string(w), text) }
