package llm

import "encoding/json"

// apiError is the error object of the APIs (developers.openai.com/api/docs/guides/error-codes,
// platform.claude.com/docs/en/api/errors). Anthropic's has no code and no parameter.
type apiError struct {
	Code    string `json:"code"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Message string `json:"message"`
}

// parseAPIError parses an error object, including the variants of OpenAI-compatible servers: with or without an "error"
// member, as a string, and with numeric codes. Missing fields are empty.
func parseAPIError(body []byte) (f apiError) {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) == nil && outer.Error != nil {
		body = outer.Error
	}
	if json.Unmarshal(body, &f.Message) != nil {
		_ = json.Unmarshal(body, &f) // skips fields of other types
	}
	return f
}
