package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/dev/fakes/managedagents"
)

// maxLine limits the part of a result that sessionLine shows, in characters.
const maxLine = 200

// sessionLine describes an event of a managed agent's session in a line; empty for events that people need not see.
func sessionLine(e managedagents.Event) string {
	text := ""
	blocks, _ := e["content"].([]any)
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		part, _ := block["text"].(string)
		text += part
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	if runes := []rune(first); len(runes) > maxLine {
		first = string(runes[:maxLine-1]) + "…"
	}
	switch e["type"] {
	case "user.message":
		return "user:    " + text
	case "agent.message":
		return "agent:   " + text
	case "agent.custom_tool_use":
		input, _ := json.Marshal(e["input"]) // it was read from JSON
		return fmt.Sprintf("calls:   %s %s", e["name"], input)
	case "user.custom_tool_result":
		if e["is_error"] == true {
			return "failed:  " + first
		}
		return "result:  " + first
	}
	return ""
}

// FollowSession passes the lines of a session's events to show, until the agent waits for the user or ctx ends.
func FollowSession(ctx context.Context, fake *managedagents.Server, session string, show func(line string)) {
	for shown := 0; ; {
		events, changed := fake.Events(session)
		for _, e := range events[shown:] {
			if line := sessionLine(e); line != "" {
				show(line)
			}
			if reason, _ := e["stop_reason"].(map[string]any); reason["type"] == "end_turn" {
				return
			}
		}
		shown = len(events)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
