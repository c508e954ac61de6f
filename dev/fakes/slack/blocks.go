package slack

import (
	"encoding/json"
	"unicode/utf8"
)

// Limits of Block Kit (docs.slack.dev/reference/block-kit).
const (
	mostBlocks     = 50
	mostInContext  = 10
	longestBlock   = 3000    // characters of a text object
	largestView    = 250_000 // bytes
	mostViewBlocks = 100
)

// validBlocks reports whether Slack takes blocks: it refuses empty and long texts wherever they are.
func validBlocks(blocks []json.RawMessage, most int) bool {
	for _, raw := range blocks {
		var block any
		if json.Unmarshal(raw, &block) != nil || !validBlock(block) {
			return false
		}
	}
	return len(blocks) <= most
}

// validMessage reports whether Slack takes the blocks of a message.
func validMessage(c *call) bool {
	var blocks []json.RawMessage
	raw := c.text("blocks")
	return raw == "" || json.Unmarshal([]byte(raw), &blocks) == nil && validBlocks(blocks, mostBlocks)
}

func validBlock(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !validBlock(item) {
				return false
			}
		}
	case map[string]any:
		text, ok := v["text"].(string)
		n := utf8.RuneCountInString(text)
		switch elements, _ := v["elements"].([]any); v["type"] {
		case "text":
			if !ok || n == 0 {
				return false
			}
		case "plain_text", "mrkdwn":
			if !ok || n == 0 || n > longestBlock {
				return false
			}
		case "context":
			if len(elements) > mostInContext {
				return false
			}
		}
		for _, item := range v {
			if !validBlock(item) {
				return false
			}
		}
	}
	return true
}
