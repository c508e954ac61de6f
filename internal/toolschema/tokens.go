package toolschema

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Tokens estimates how many tokens of a model's context a tool takes: its name, description and input schema as the
// APIs of models take them, with a token for four bytes of ASCII or for one other character. Models differ from it by
// about a third.
func Tokens(name, description string, schema json.RawMessage) int {
	text, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}{name, strings.TrimSpace(description), schema})
	if err != nil {
		return 0 // schemas are valid JSON
	}
	ascii, others := 0, 0
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}
