package openai

import (
	"github.com/hako-run/hako/dev/fakes/script"
)

// stream sends the answer (developers.openai.com/api/docs/guides/streaming-responses).
func (a *response) stream(s *script.Stream) {
	s.Sleep(a.step.Wait)
	a.send(s, "response.created", map[string]any{"response": a.state("in_progress", nil)})
	a.send(s, "response.in_progress", map[string]any{"response": a.state("in_progress", nil)})
	for i, item := range a.items {
		a.streamItem(s, i, item)
	}
	switch {
	case a.step.Fail != nil:
		e := failure(a.step.Fail)
		state := a.state("failed", nil)
		state["error"] = map[string]any{"code": e.code, "message": e.message}
		a.send(s, "response.failed", map[string]any{"response": state})
		return
	case a.step.Cut:
		s.Break()
	}
	reason := map[string]string{script.Length: "max_output_tokens", script.Filtered: "content_filter"}[a.step.Stop]
	if reason != "" {
		a.send(s, "response.incomplete", map[string]any{"response": a.state("incomplete", reason)})
		return
	}
	a.send(s, "response.completed", map[string]any{"response": a.state("completed", nil)})
}

// state is the response as it is.
func (a *response) state(status string, reason any) map[string]any {
	state := map[string]any{"id": a.id, "object": "response", "created_at": 1767225600, "status": status,
		"model":  a.in.Model,
		"output": []any{}, "error": nil, "incomplete_details": nil, "usage": nil, "store": false}
	if status == "completed" || status == "incomplete" {
		state["output"], state["usage"] = a.items, a.usage
	}
	if reason != nil {
		state["incomplete_details"] = map[string]any{"reason": reason}
	}
	return state
}

func (a *response) send(s *script.Stream, kind string, event map[string]any) {
	event["type"], event["sequence_number"] = kind, a.sequence
	a.sequence++
	s.Send(kind, event)
}

func (a *response) streamItem(s *script.Stream, i int, item map[string]any) {
	begun := map[string]any{}
	for name, value := range item {
		begun[name] = value
	}
	kind, member, text := "", "", ""
	switch item["type"] {
	case "message":
		part := item["content"].([]any)[0].(map[string]any)
		kind, member, text = "response.output_text", "text", a.step.Say
		if part["type"] == "refusal" {
			kind, member = "response.refusal", "refusal"
		}
		begun["content"], begun["status"] = []any{}, "in_progress"
	case "function_call":
		kind, member, text = "response.function_call_arguments", "arguments", item["arguments"].(string)
		begun["arguments"], begun["status"] = "", "in_progress"
	}
	a.send(s, "response.output_item.added", map[string]any{"output_index": i, "item": begun})
	tokens := script.Tokens(text)
	for j, token := range tokens {
		if a.step.Cut && i == len(a.items)-1 && j > 0 && j >= len(tokens)/2 {
			s.Break()
		}
		s.Sleep(a.step.Pace)
		a.send(s, kind+".delta", map[string]any{"item_id": item["id"], "output_index": i, "content_index": 0,
			"delta": token})
	}
	if kind != "" {
		a.send(s, kind+".done", map[string]any{"item_id": item["id"], "output_index": i, "content_index": 0,
			member: text})
	}
	a.send(s, "response.output_item.done", map[string]any{"output_index": i, "item": item})
}
