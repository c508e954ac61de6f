package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/script"
)

func (s *Server) messages(w http.ResponseWriter, r *http.Request, body []byte) error {
	in, err := read(body)
	if err != nil {
		return err
	}
	if err := s.check(in); err != nil {
		return err
	}
	if s.Window > 0 && len(body)/4 > s.Window {
		return Invalid("prompt is too long: %d tokens > %d maximum", len(body)/4, s.Window)
	}
	step := s.Script.Answer(in.conversation())
	if step.Fail != nil && !step.Fail.Streamed {
		return failure(step.Fail)
	}
	a := s.answer(in, &step)
	if !in.Stream {
		fakehttp.JSON(w, http.StatusOK, a.whole())
		return nil
	}
	a.stream(script.NewStream(w, r))
	return nil
}

func failure(f *script.Failure) *Error {
	e := failures[f.Kind]
	e.RetryAfter = f.RetryAfter
	return &e
}

// answer is one answer.
type answer struct {
	step   *script.Step
	id     string
	model  string
	blocks []map[string]any // whole
	usage  map[string]any
	stop   string
}

func (s *Server) answer(in *request, step *script.Step) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	a := &answer{step: step, id: fmt.Sprintf("msg_%04d", s.answers), model: in.Model, stop: "end_turn"}
	signature := ""
	if step.Think != "" {
		signature = fmt.Sprintf("signature-%04d", s.answers)
		s.think(signature, step.Think)
		a.blocks = append(a.blocks, map[string]any{"type": "thinking", "thinking": step.Think, "signature": signature})
	}
	if step.Say != "" {
		a.blocks = append(a.blocks, map[string]any{"type": "text", "text": step.Say})
	}
	var calls []map[string]any
	for i, call := range step.Call {
		id := fmt.Sprintf("toolu_%04d_%d", s.answers, i)
		if signature != "" {
			s.think("before "+id, step.Think)
		}
		calls = append(calls, map[string]any{"type": "tool_use", "id": id, "name": call.Tool, "input": call.Arguments})
		a.stop = "tool_use"
	}
	a.blocks = slices.Concat(a.blocks, s.search(in, calls), calls)
	switch step.Stop {
	case script.Length:
		a.stop = "max_tokens"
	case script.Refusal, script.Filtered:
		a.stop = "refusal"
	}
	a.usage = s.count(in, step)
	return a
}

// think remembers a thought. mu is held.
func (s *Server) think(signature, thought string) {
	if s.thoughts == nil {
		s.thoughts = map[string]string{}
	}
	s.thoughts[signature] = thought
}

// count counts tokens as four bytes each, with what marks of cache control keep. mu is held.
func (s *Server) count(in *request, step *script.Step) map[string]any {
	whole, marks := marked(in)
	read, written := 0, 0
	for beginning := range s.cached {
		if strings.HasPrefix(whole, beginning) {
			read = max(read, len(beginning)/4)
		}
	}
	for _, beginning := range marks {
		if s.cached == nil {
			s.cached = map[string]bool{}
		}
		s.cached[beginning] = true
		written = max(0, len(beginning)/4-read) // the last is the longest
	}
	return map[string]any{
		"input_tokens": max(1, len(whole)/4-read-written), "cache_read_input_tokens": read,
		"cache_creation_input_tokens": written,
		"output_tokens":               max(1, len(step.Say+step.Think)/4+8*len(step.Call)),
	}
}

// marked returns what is read, in the order in which it is, and its beginnings that cache control marks.
func marked(in *request) (whole string, marks []string) {
	add := func(part any, mark *choice) {
		text, _ := json.Marshal(part) // what was read can be written
		whole += string(text)
		if mark != nil {
			marks = append(marks, whole)
		}
	}
	for _, tool := range in.Tools {
		if tool.Deferred {
			continue // it is not part of what is read
		}
		mark := tool.CacheControl
		tool.CacheControl = nil
		add(tool, mark)
	}
	var system content
	_ = json.Unmarshal(in.System, &system) // without one there is none
	for _, m := range append([]message{{Role: "system", Content: system}}, in.Messages...) {
		for _, b := range m.Content {
			mark := b.CacheControl
			b.CacheControl = nil
			add([]any{m.Role, b}, mark)
		}
	}
	return whole, marks
}

// whole is the answer without a stream.
func (a *answer) whole() any {
	blocks := []any{}
	for _, b := range a.blocks {
		if arguments, ok := b["input"].(string); ok {
			b["input"] = json.RawMessage(arguments)
		}
		blocks = append(blocks, b)
	}
	return map[string]any{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": blocks,
		"stop_reason": a.stop, "stop_sequence": nil, "usage": a.usage,
	}
}

// stream sends the answer (platform.claude.com/docs/en/build-with-claude/streaming).
func (a *answer) stream(s *script.Stream) {
	s.Sleep(a.step.Wait)
	s.Send("message_start", map[string]any{"type": "message_start", "message": map[string]any{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": a.begun(),
	}})
	s.Send("ping", map[string]any{"type": "ping"})
	for i, b := range a.blocks {
		a.streamBlock(s, i, b)
	}
	if a.step.Fail != nil {
		s.Send("error", failure(a.step.Fail).body())
		return
	}
	if a.step.Cut {
		s.Break()
	}
	s.Send("message_delta", map[string]any{"type": "message_delta",
		"delta": map[string]any{"stop_reason": a.stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": a.usage["output_tokens"]}})
	s.Send("message_stop", map[string]any{"type": "message_stop"})
}

// begun is the usage when the answer begins.
func (a *answer) begun() map[string]any {
	usage := map[string]any{}
	for name, value := range a.usage {
		usage[name] = value
	}
	usage["output_tokens"] = 1
	return usage
}

func (a *answer) streamBlock(s *script.Stream, i int, b map[string]any) {
	start, deltas := parts(b)
	s.Send("content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": start})
	for j, delta := range deltas {
		if a.step.Cut && i == len(a.blocks)-1 && j > 0 && j >= len(deltas)/2 {
			s.Break()
		}
		s.Sleep(a.step.Pace)
		s.Send("content_block_delta", map[string]any{"type": "content_block_delta", "index": i, "delta": delta})
	}
	s.Send("content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
}

// parts takes a block apart into its start and its deltas.
func parts(b map[string]any) (start map[string]any, deltas []map[string]any) {
	each := func(kind, member, text string) {
		for _, token := range script.Tokens(text) {
			deltas = append(deltas, map[string]any{"type": kind, member: token})
		}
	}
	switch b["type"] {
	case "thinking":
		start = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
		each("thinking_delta", "thinking", b["thinking"].(string))
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		start = map[string]any{"type": "text", "text": ""}
		each("text_delta", "text", b["text"].(string))
	case "server_tool_use":
		start = map[string]any{"type": b["type"], "id": b["id"], "name": b["name"]} // without an input
		each("input_json_delta", "partial_json", b["input"].(string))
	case "tool_search_tool_result":
		start = b
	default:
		start = map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}
		each("input_json_delta", "partial_json", b["input"].(string))
	}
	return start, deltas
}
