package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hako-run/hako/dev/fakes/script"
)

// The search for deferred tools (developers.openai.com/api/docs/guides/tools-tool-search).
const toolSearch = "tool_search"

// found is a function with the namespace that it is in; empty if it is in none.
type found struct {
	function
	namespace string
}

// functions returns the functions of a request, also those in namespaces.
func (in *responsesRequest) functions() (list []found) {
	for _, t := range in.Tools {
		if t.Type == "function" {
			list = append(list, found{t.function, ""})
		}
		for _, f := range t.Tools {
			list = append(list, found{f.function, t.Name})
		}
	}
	return list
}

func (in *responsesRequest) namespaceOf(name string) string {
	for _, f := range in.functions() {
		if f.Name == name {
			return f.namespace
		}
	}
	return ""
}

func (in *responsesRequest) searches() bool {
	return slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Type == toolSearch })
}

// checkSearch holds that namespaces are described, and that deferred functions can be found.
func (s *Server) checkSearch(in *responsesRequest) error {
	for i, t := range in.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type == toolSearch && slices.Contains(s.Searchless, in.Model):
			return invalid("tools", "Tool 'tool_search' is not supported with %s.", in.Model)
		case t.Type == "namespace" && (t.Description == "" || len(t.Tools) == 0 || !functionName().MatchString(t.Name)):
			return invalid(at, "a namespace needs a name, a description and tools")
		case !slices.Contains([]string{"function", "namespace", toolSearch}, t.Type):
			return invalid(at+".type", "Invalid value: '%s'.", t.Type)
		}
	}
	for _, f := range in.functions() {
		if f.Deferred && !in.searches() {
			return invalid("tools", "defer_loading needs the tool_search tool.")
		}
	}
	return nil
}

// checkFound holds that a search of the input is followed by what it found, and that both are as they were sent.
func (s *Server) checkFound(in *responsesRequest, i int, at string) error {
	it := in.Input[i]
	switch {
	case !in.searches():
		return invalid(at, "Item of type '%s' was provided without the tool_search tool.", it.Type)
	case s.sent[it.ID] != it.Type+string(it.Arguments)+string(it.Tools):
		return invalid(at, "Item '%s' is not one that was sent.", it.ID)
	case it.Type == "tool_search_call" && (i+1 == len(in.Input) || in.Input[i+1].Type != "tool_search_output"):
		return invalid(at, "Item of type 'tool_search_call' was provided without its output.")
	}
	return nil
}

// search returns the items of a search for the deferred functions of the calls. There are none if the model has found
// them before.
func (s *Server) search(in *responsesRequest, calls []script.Call, n int) []map[string]any {
	var tools []map[string]any
	paths := []string{}
	for _, f := range in.functions() {
		called := slices.ContainsFunc(calls, func(c script.Call) bool { return c.Tool == f.Name })
		known := slices.ContainsFunc(in.Input, func(it item) bool {
			return it.Type == "tool_search_output" && json.Valid(it.Tools) && contains(it.Tools, f.Name)
		})
		if called && f.Deferred && !known {
			paths = append(paths, f.namespace)
			tools = append(tools, map[string]any{"type": "namespace", "name": f.namespace, "tools": []any{
				map[string]any{"type": "function", "name": f.Name, "defer_loading": true}}})
		}
	}
	if len(tools) == 0 {
		return nil
	}
	items := []map[string]any{
		{"type": "tool_search_call", "id": fmt.Sprintf("tsc_%04d", n), "execution": "server", "call_id": nil,
			"status": "completed", "arguments": map[string]any{"paths": paths}},
		{"type": "tool_search_output", "id": fmt.Sprintf("tso_%04d", n), "execution": "server", "call_id": nil,
			"status": "completed", "tools": tools},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[string]string{}
	}
	for _, it := range items {
		s.sent[it["id"].(string)] = it["type"].(string) + text(it["arguments"]) + text(it["tools"])
	}
	return items
}

// contains reports whether the tools that a search found have one of a name.
func contains(tools json.RawMessage, name string) bool {
	var list []tool
	_ = json.Unmarshal(tools, &list) // none, then
	return slices.ContainsFunc(list, func(t tool) bool {
		return slices.ContainsFunc(t.Tools, func(m member) bool { return m.Name == name })
	})
}

// text is v as JSON, or empty for nil.
func text(v any) string {
	if v == nil {
		return ""
	}
	data, _ := json.Marshal(v) // texts and lists can be written
	return string(data)
}
