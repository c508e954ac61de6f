package pipeline

import (
	"bytes"
	"reflect"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

// successor is who serves now what a source served whose backend has been closed before it took the request: another configuration or
// version has taken its place while the call was on its way, or waited for a person. It is nil where there is none, or where the tool is not
// what it was: what was permitted would be something else.
func (p *Pipeline) successor(was *subject, request *abi.Request) *catalog.Source {
	now := func(s *catalog.Source) bool {
		return s != was.source && s.Name == was.source.Name && s.Upstream == was.source.Upstream
	}
	view := p.catalog.View()
	if request.Method == abi.CallTool {
		for _, tool := range view.Tools {
			if now(tool.Source) && tool.Spec.Name == request.Name && bytes.Equal(tool.Spec.InputSchema, was.input) && reflect.DeepEqual(tool.Hints(), was.annotations) {
				return tool.Source
			}
		}
		return nil
	}
	for _, prompt := range view.Prompts {
		if now(prompt.Source) {
			return prompt.Source
		}
	}
	for _, resource := range view.Resources {
		if now(resource.Source) {
			return resource.Source
		}
	}
	for _, template := range view.Templates {
		if now(template.Source) {
			return template.Source
		}
	}
	return nil
}
