package pipeline

import (
	"bytes"
	"reflect"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

// successor returns the source that replaced a source whose backend was closed before it served the request: a new
// configuration or version was loaded during the call, or while it waited for a person. It is nil if there is none, or
// if schema or annotations of the tool have changed, because what was permitted would then be something else.
func (p *Pipeline) successor(was *subject, request *abi.Request) *catalog.Source {
	replaces := func(s *catalog.Source) bool {
		return s != was.source && s.Name == was.source.Name && s.Upstream == was.source.Upstream
	}
	view := p.catalog.View()
	if request.Method == abi.CallTool {
		for _, tool := range view.Tools {
			if replaces(tool.Source) && tool.Spec.Name == request.Name &&
				bytes.Equal(tool.Spec.InputSchema, was.input) && reflect.DeepEqual(tool.Hints(), was.annotations) {
				return tool.Source
			}
		}
		return nil
	}
	for _, prompt := range view.Prompts {
		if replaces(prompt.Source) {
			return prompt.Source
		}
	}
	for _, resource := range view.Resources {
		if replaces(resource.Source) {
			return resource.Source
		}
	}
	for _, template := range view.Templates {
		if replaces(template.Source) {
			return template.Source
		}
	}
	return nil
}
