package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The search for deferred tools (platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool).
const (
	searchName = "tool_search_tool_bm25"
	searchType = searchName + "_20251119"
)

// searches reports whether the model may search for tools.
func (in *request) searches() bool {
	return slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Type == searchType })
}

// checkDeferred holds that something is there from the start, and that the model can search.
func (s *Server) checkDeferred(in *request) error {
	deferred := slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Deferred })
	switch {
	case in.searches() && slices.Contains(s.Searchless, in.Model):
		return Invalid("'%s' does not support tool types: %s.", in.Model, searchType)
	case deferred && !slices.ContainsFunc(in.Tools, func(t tool) bool { return !t.Deferred }):
		return Invalid("All tools have defer_loading set. At least one tool must be non-deferred.")
	}
	return nil
}

// checkSearch holds that a block of a search is one of ours, unchanged, and that what it found is still there.
func (s *Server) checkSearch(in *request, at string, before content, b *block) error {
	for _, found := range b.Content {
		for _, reference := range found.References {
			if !slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Name == reference.Tool }) {
				return Invalid("Tool reference '%s' has no corresponding tool definition", reference.Tool)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !in.searches():
		return Invalid("%s: `%s` block without the tool of that search", at, b.Type)
	case b.Type == "server_tool_use":
		if search, ok := s.searches[b.ID]; !ok || b.Name != searchName || string(b.Input) != search.input {
			return Invalid("%s.server_tool_use: name, id or input is invalid", at)
		}
	case len(before) == 0 || before[len(before)-1].ID != b.ToolUseID:
		return Invalid("%s: unexpected `tool_use_id` found in `tool_search_tool_result` blocks: %s", at, b.ToolUseID)
	case len(b.Content) != 1 || b.Content[0].Type != "tool_search_tool_search_result" ||
		!slices.EqualFunc(b.Content[0].References, s.searches[b.ToolUseID].found,
			func(b block, name string) bool { return b.Tool == name }):
		return Invalid("%s: the result of a search was changed", at)
	}
	return nil
}

// search is a search of the model's.
type search struct {
	input string
	found []string // names of tools
}

// search returns the blocks of a search that finds the deferred tools of the calls. There are none if the model has
// found them before. mu is held.
func (s *Server) search(in *request, calls []map[string]any) []map[string]any {
	known := in.found()
	var made search
	for _, call := range calls {
		name := call["name"].(string)
		if !slices.Contains(known, name) && !slices.Contains(made.found, name) &&
			slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Deferred && t.Name == name }) {
			made.found = append(made.found, name)
		}
	}
	if len(made.found) == 0 {
		return nil
	}
	if s.searches == nil {
		s.searches, s.needed = map[string]search{}, map[string]string{}
	}
	id := fmt.Sprintf("srvtoolu_%04d", s.answers)
	input, _ := json.Marshal(map[string]string{"query": strings.Join(made.found, " ")}) // texts can be written
	made.input = string(input)
	s.searches[id] = made
	references := []any{}
	for _, name := range made.found {
		references = append(references, map[string]any{"type": "tool_reference", "tool_name": name})
	}
	for _, call := range calls {
		s.needed[call["id"].(string)] = id
	}
	return []map[string]any{
		{"type": "server_tool_use", "id": id, "name": searchName, "input": made.input},
		{"type": "tool_search_tool_result", "tool_use_id": id, "content": map[string]any{
			"type": "tool_search_tool_search_result", "tool_references": references}},
	}
}

// found returns the tools that searches in the conversation have found.
func (in *request) found() (names []string) {
	for _, m := range in.Messages {
		for _, b := range m.Content {
			for _, result := range b.Content {
				for _, reference := range result.References {
					names = append(names, reference.Tool)
				}
			}
		}
	}
	return names
}
