package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/hako-run/hako/dev/fakes/script"
)

// chatRequest is a request for a chat completion.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           int           `json:"max_tokens"`
	MaxCompletionTokens int           `json:"max_completion_tokens"`
	Temperature         *float64      `json:"temperature"`
	Stream              bool          `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	} `json:"tools"`
	ToolChoice        any   `json:"tool_choice"`
	ParallelToolCalls *bool `json:"parallel_tool_calls"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// text is the content, or what of its parts is text.
func (m *chatMessage) text() string { return textOf(m.Content) }

func (s *Server) chat(w http.ResponseWriter, r *http.Request, body []byte) error {
	var in chatRequest
	if err := read(body, &in); err != nil {
		return err
	}
	if err := s.checkChat(&in, body); err != nil {
		return err
	}
	step, err := s.step(in.conversation())
	if err != nil {
		return err
	}
	a := &chatAnswer{step: step, in: &in, id: s.number(), input: len(body) / 4}
	a.stream(script.NewStream(w, r))
	return nil
}

func (s *Server) checkChat(in *chatRequest, body []byte) error {
	if err := s.checkModel(in.Model, body); err != nil {
		return err
	}
	thinks := slices.Contains(s.Thinking, in.Model)
	switch {
	case !in.Stream:
		return invalid("stream", "the fake only streams chat completions")
	case thinks && in.Temperature != nil:
		return invalid("temperature", "Unsupported parameter: 'temperature' is not supported with this model.")
	case thinks && in.MaxTokens != 0:
		return invalid("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case thinks && len(in.Tools) > 0:
		return invalid("reasoning_effort",
			"Function tools with reasoning_effort are not supported for %s in /v1/chat/completions.", in.Model)
	case in.ToolChoice != nil && len(in.Tools) == 0:
		return invalid("tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
	}
	var tools []function
	for _, tool := range in.Tools {
		tools = append(tools, tool.Function)
	}
	if err := s.checkTools(tools, "tools[%d].function."); err != nil {
		return err
	}
	return checkTurns(in.Messages)
}

// checkTurns holds that calls are answered at once, each once, and that the user and the model take turns, as the
// templates of many local models want it.
func checkTurns(messages []chatMessage) error {
	var open []string
	last := ""
	for i, m := range messages {
		at := fmt.Sprintf("messages.[%d].role", i)
		if m.Role != "tool" && len(open) > 0 {
			return invalid(at, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return invalid(at, "System message must be at the beginning.")
			}
		case "tool":
			if !slices.Contains(open, m.ToolCallID) {
				return invalid(at,
					"messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.ToolCallID })
		case "user", "assistant":
			if m.Role == last {
				return invalid(at, "Conversation roles must alternate.")
			}
		default:
			return invalid(at, "Invalid value: '%s'.", m.Role)
		}
		for _, call := range m.ToolCalls {
			if call.ID == "" || !functionName().MatchString(call.Function.Name) ||
				!json.Valid([]byte(call.Function.Arguments)) {
				return invalid(at, "a tool call without an ID, with a bad name or without JSON")
			}
			open = append(open, call.ID)
		}
		last = m.Role
	}
	if len(messages) == 0 || len(open) > 0 || last == "assistant" || last == "system" {
		return invalid("messages", "the conversation must end with a message of the user's or with all results")
	}
	return nil
}

func (in *chatRequest) conversation() *script.Conversation {
	c := &script.Conversation{NoTools: in.ToolChoice == "none"}
	for _, tool := range in.Tools {
		c.Tools = append(c.Tools, tool.Function.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			c.Text, c.Results = m.text(), nil
		case "assistant":
			c.Results = nil
		case "tool":
			c.Results = append(c.Results, m.text())
		}
	}
	return c
}

// chatAnswer is one answer.
type chatAnswer struct {
	step  *script.Step
	in    *chatRequest
	id    int
	input int
}

// stream sends the answer's chunks.
func (a *chatAnswer) stream(s *script.Stream) {
	s.Sleep(a.step.Wait)
	a.send(s, map[string]any{"role": "assistant", "content": ""}, nil)
	deltas, finish := a.deltas()
	for i, delta := range deltas {
		if a.step.Cut && i > 0 && i >= len(deltas)/2 {
			s.Break()
		}
		s.Sleep(a.step.Pace)
		a.send(s, delta, nil)
	}
	if a.step.Fail != nil {
		s.Send("", map[string]any{"error": failure(a.step.Fail).body()})
		return
	}
	if a.step.Cut {
		s.Break()
	}
	a.send(s, map[string]any{}, finish)
	if a.in.StreamOptions.IncludeUsage {
		a.sendChunk(s, map[string]any{"choices": []any{}, "usage": a.usage()})
	}
	s.SendText("", "[DONE]")
}

func (a *chatAnswer) usage() map[string]any {
	output := max(1, len(a.step.Say)/4+8*len(a.step.Call))
	cached := a.input / 2 // a beginning of it, as always
	return map[string]any{"prompt_tokens": a.input, "completion_tokens": output, "total_tokens": a.input + output,
		"prompt_tokens_details": map[string]any{"cached_tokens": cached}}
}

func (a *chatAnswer) send(s *script.Stream, delta map[string]any, finish any) {
	a.sendChunk(s, map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta,
		"finish_reason": finish}}})
}

func (a *chatAnswer) sendChunk(s *script.Stream, chunk map[string]any) {
	chunk["id"], chunk["object"] = fmt.Sprintf("chatcmpl-%04d", a.id), "chat.completion.chunk"
	chunk["created"], chunk["model"] = 1767225600, a.in.Model
	s.Send("", chunk)
}

// deltas are the answer's parts and the reason why it ends.
func (a *chatAnswer) deltas() (deltas []map[string]any, finish string) {
	member := "content"
	finish = "stop"
	switch a.step.Stop {
	case script.Length:
		finish = "length"
	case script.Filtered:
		finish = "content_filter"
	case script.Refusal:
		member = "refusal"
	}
	for _, token := range script.Tokens(a.step.Say) {
		deltas = append(deltas, map[string]any{member: token})
	}
	for i, call := range a.step.Call {
		begin := map[string]any{"index": i, "id": fmt.Sprintf("call_%04d_%d", a.id, i), "type": "function",
			"function": map[string]any{"name": call.Tool, "arguments": ""}}
		deltas = append(deltas, map[string]any{"tool_calls": []any{begin}})
		for _, token := range script.Tokens(call.Arguments) {
			part := map[string]any{"index": i, "function": map[string]any{"arguments": token}}
			deltas = append(deltas, map[string]any{"tool_calls": []any{part}})
		}
		if a.step.Stop == "" {
			finish = "tool_calls"
		}
	}
	return deltas, finish
}
