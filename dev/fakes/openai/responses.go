package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/hako-run/hako/dev/fakes/script"
)

// responsesRequest is a request for a response.
type responsesRequest struct {
	Model             string   `json:"model"`
	Instructions      string   `json:"instructions"`
	Input             []item   `json:"input"`
	MaxOutputTokens   int      `json:"max_output_tokens"`
	Temperature       *float64 `json:"temperature"`
	Stream            bool     `json:"stream"`
	Store             *bool    `json:"store"`
	Include           []string `json:"include"`
	Tools             []tool   `json:"tools"`
	ToolChoice        any      `json:"tool_choice"`
	ParallelToolCalls *bool    `json:"parallel_tool_calls"`
}

// tool is a function, a namespace of functions, or the search for those that are deferred.
type tool struct {
	Type string `json:"type"`
	function
	Tools []member `json:"tools"`
}

// member is a function in a namespace.
type member struct {
	Type string `json:"type"`
	function
}

// item is one of the input.
type item struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	Status           string          `json:"status"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Namespace        string          `json:"namespace"`
	Arguments        json.RawMessage `json:"arguments"`
	Execution        string          `json:"execution"`
	Tools            json.RawMessage `json:"tools"`
	Output           json.RawMessage `json:"output"`
	Summary          []any           `json:"summary"`
	EncryptedContent string          `json:"encrypted_content"`
}

func (s *Server) responses(w http.ResponseWriter, r *http.Request, body []byte) error {
	var in responsesRequest
	if err := read(body, &in); err != nil {
		return err
	}
	if err := s.checkResponses(&in, body); err != nil {
		return err
	}
	step, err := s.step(in.conversation())
	if err != nil {
		return err
	}
	a := s.respond(&in, step, len(body)/4)
	a.stream(script.NewStream(w, r))
	return nil
}

func (s *Server) checkResponses(in *responsesRequest, body []byte) error {
	if err := s.checkModel(in.Model, body); err != nil {
		return err
	}
	thinks := slices.Contains(s.Thinking, in.Model)
	encrypted := slices.Contains(in.Include, "reasoning.encrypted_content")
	switch {
	case !in.Stream:
		return invalid("stream", "the fake only streams responses")
	case thinks && in.Temperature != nil:
		return invalid("temperature", "Unsupported parameter: 'temperature' is not supported with this model.")
	case encrypted && !thinks:
		return invalid("include", "Encrypted content is not supported with this model.")
	case in.MaxOutputTokens != 0 && in.MaxOutputTokens < 16:
		return invalid("max_output_tokens",
			"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
	}
	if err := s.checkSearch(in); err != nil {
		return err
	}
	var tools []function
	for _, f := range in.functions() {
		tools = append(tools, f.function)
	}
	if err := s.checkTools(tools, "tools[%d]."); err != nil {
		return err
	}
	return s.checkItems(in)
}

// checkItems holds that each call is answered once, after the thoughts that led to it.
func (s *Server) checkItems(in *responsesRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := in.Input
	open, thought := map[string]bool{}, map[string]bool{}
	for i, it := range items {
		at := fmt.Sprintf("input[%d]", i)
		switch it.Type {
		case "", "message":
			if it.Role != "user" && it.Role != "assistant" {
				return invalid(at+".role", "Invalid value: '%s'.", it.Role)
			}
		case "reasoning":
			thought[it.EncryptedContent] = true
		case "function_call":
			if needs := s.thoughts[it.CallID]; needs != "" && !thought[needs] {
				return invalid(at, "Item of type 'function_call' was provided without its required 'reasoning' item.")
			}
			var arguments string
			if json.Unmarshal(it.Arguments, &arguments) != nil || !functionName().MatchString(it.Name) ||
				!json.Valid([]byte(arguments)) {
				return invalid(at, "a call with a bad name or without JSON")
			}
			if namespace := in.namespaceOf(it.Name); namespace != it.Namespace {
				return invalid(at+".namespace", "%s is in the namespace %q.", it.Name, namespace)
			}
			open[it.CallID] = true
		case "tool_search_call", "tool_search_output":
			if err := s.checkFound(in, i, at); err != nil {
				return err
			}
		case "function_call_output":
			if !open[it.CallID] {
				return invalid(at, "No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
		default:
			return invalid(at+".type", "Invalid value: '%s'.", it.Type)
		}
	}
	for id := range open {
		return invalid("input", "No tool output found for function call %s.", id)
	}
	if len(items) == 0 {
		return invalid("input", "Missing required parameter: 'input'.")
	}
	return nil
}

func (in *responsesRequest) conversation() *script.Conversation {
	c := &script.Conversation{NoTools: in.ToolChoice == "none"}
	for _, f := range in.functions() {
		c.Tools = append(c.Tools, f.Name)
	}
	for _, it := range in.Input {
		switch {
		case it.Type == "function_call_output":
			c.Results = append(c.Results, textOf(it.Output))
		case it.Role == "user":
			c.Text, c.Results = textOf(it.Content), nil
		default:
			c.Results = nil
		}
	}
	return c
}

// textOf is a text, or the texts of a list of parts.
func textOf(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(data, &parts) // nothing, then
	for _, part := range parts {
		text += part.Text
	}
	return text
}

// response is one answer.
type response struct {
	step     *script.Step
	in       *responsesRequest
	id       string
	items    []map[string]any
	usage    map[string]any
	sequence int
}

func (s *Server) respond(in *responsesRequest, step *script.Step, input int) *response {
	n := s.number()
	a := &response{step: step, in: in, id: fmt.Sprintf("resp_%04d", n)}
	thought := ""
	if step.Think != "" {
		thought = fmt.Sprintf("encrypted-%04d", n)
		a.items = append(a.items, map[string]any{"id": fmt.Sprintf("rs_%04d", n), "type": "reasoning",
			"summary": []any{}, "encrypted_content": thought})
	}
	if step.Say != "" {
		part := map[string]any{"type": "output_text", "text": step.Say, "annotations": []any{}}
		if step.Stop == script.Refusal {
			part = map[string]any{"type": "refusal", "refusal": step.Say}
		}
		a.items = append(a.items, map[string]any{"id": fmt.Sprintf("msg_%04d", n), "type": "message",
			"role": "assistant", "status": "completed", "content": []any{part}})
	}
	a.items = append(a.items, s.search(in, step.Call, n)...)
	for i, call := range step.Call {
		id := fmt.Sprintf("call_%04d_%d", n, i)
		item := map[string]any{"id": fmt.Sprintf("fc_%04d_%d", n, i), "type": "function_call", "status": "completed",
			"call_id": id, "name": call.Tool, "arguments": call.Arguments}
		if namespace := in.namespaceOf(call.Tool); namespace != "" {
			item["namespace"] = namespace
		}
		a.items = append(a.items, item)
		s.led(id, thought)
	}
	output := max(1, len(step.Say+step.Think)/4+8*len(step.Call))
	a.usage = map[string]any{"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
		"input_tokens_details":  map[string]any{"cached_tokens": input / 2, "cache_write_tokens": 0},
		"output_tokens_details": map[string]any{"reasoning_tokens": len(step.Think) / 4}}
	return a
}

// led remembers the thought that led to a call.
func (s *Server) led(call, thought string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thoughts == nil {
		s.thoughts = map[string]string{}
	}
	s.thoughts[call] = thought
}
