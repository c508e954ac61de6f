package pipeline

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/toolsearch"
)

// search has indexes of the tools of views, the catalog's and those of toolsets, each built at the first search. The
// zero value is ready.
type search struct {
	mu      sync.Mutex
	indexes map[*catalog.View]*toolsearch.Index
}

// maxIndexes bounds the indexes that are kept, those of earlier views among them.
const maxIndexes = 16

// toolName matches queries that are names of tools rather than words.
var toolName = regexp.MustCompile(`^(?:[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)+|[a-z0-9]+(?:[A-Z][a-z0-9]*)+)$`)

// find returns the tools of a view that match a query, best first. A misspelled name finds the tools with similar names
// first.
func (s *search) find(view *catalog.View, query string) []*catalog.Tool {
	var found []*catalog.Tool
	if name := strings.TrimSpace(query); toolName.MatchString(name) {
		names := make([]string, len(view.Tools))
		for i, tool := range view.Tools {
			names[i] = tool.Name
		}
		for _, near := range strictyaml.Suggest(name, names) {
			found = append(found, view.Tools[slices.Index(names, near)])
		}
	}
	near := found
	for _, i := range s.indexOf(view).Search(query) {
		if tool := view.Tools[i]; !slices.Contains(near, tool) {
			found = append(found, tool)
		}
	}
	return found
}

func (s *search) indexOf(view *catalog.View) *toolsearch.Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := s.indexes[view]
	if index == nil {
		documents := make([]toolsearch.Document, len(view.Tools))
		for i, tool := range view.Tools {
			documents[i] = toolsearch.Document{
				Name: tool.Name, Titles: slices.Collect(maps.Values(tool.Spec.Title)),
				Descriptions: slices.Collect(maps.Values(tool.Spec.Description)),
				Arguments:    argumentTexts(tool.Spec.InputSchema),
			}
		}
		if len(s.indexes) >= maxIndexes || s.indexes == nil {
			s.indexes = map[*catalog.View]*toolsearch.Index{}
		}
		index = toolsearch.New(documents)
		s.indexes[view] = index
	}
	return index
}

// argumentTexts returns the names and descriptions of the properties of an input schema.
func argumentTexts(schema json.RawMessage) (texts []string) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	for name, property := range object.Properties {
		var described struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(property, &described) // a description that is no text does not count
		texts = append(texts, name, described.Description)
	}
	return texts
}
