package llm

import "encoding/json"

// failure is an error as the APIs describe it (developers.openai.com/api/docs/guides/error-codes, platform.claude.com/docs/en/api/errors);
// Anthropic's has no code and no parameter.
type failure struct {
	Code    string `json:"code"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Message string `json:"message"`
}

// readFailure reads an error, also as servers that are like OpenAI's write it: under "error" or not, as a text, and with numbers for
// codes. What it does not say is empty.
func readFailure(body []byte) (f failure) {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) == nil && outer.Error != nil {
		body = outer.Error
	}
	if json.Unmarshal(body, &f.Message) != nil {
		_ = json.Unmarshal(body, &f) // reads on over what is of another type
	}
	return f
}
