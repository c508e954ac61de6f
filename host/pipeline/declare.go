package pipeline

import (
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/typescript"
)

// maxDeclarations bounds the declarations in a tool's description, in bytes.
const maxDeclarations = 8 << 10

// declarationsFollow precedes the declarations in a description.
var declarationsFollow = manifest.Text{
	"en": "These are all tools that it can call, so find_tools is not needed:",
	"ja": "呼び出せるツールは次のものがすべてなので、find_tools は不要です。",
}

// mayList reports whether the tool may be named to the caller, or to a plugin that calls tools for the caller if via is
// not empty: the tenant can use it, and the policy may allow a call or ask a person.
func (p *Pipeline) mayList(caller Caller, via string, tool *catalog.Tool) bool {
	return (p.options.Offered == nil || p.options.Offered(caller.Tenant, tool)) && p.visible(caller, via, tool)
}

// Described returns a tool as it is to be described to the caller: a tool of the catalog, or a copy of it. If the
// manifest wants it (manifest.Tool.Declarations), the description ends with TypeScript declarations of the tools that
// the tool may call for the caller. If they take more than 8 KiB, it has none of them.
func (p *Pipeline) Described(caller Caller, tool *catalog.Tool) *catalog.Tool {
	if !tool.Spec.Declarations || tool.Source.Calls == nil {
		return tool
	}
	var callable []*catalog.Tool
	for _, other := range p.offer(&caller).Tools {
		if other.Source.Calls == nil && tool.Source.Calls(other.Source.Name, other.Real().Name) &&
			p.mayList(caller, tool.Source.Name, other) {
			if callable = append(callable, other); len(callable) > maxDeclarations/minDeclaration {
				return tool
			}
		}
	}
	spec := *tool.Spec
	spec.Description = manifest.Text{}
	for language, text := range tool.Spec.Description {
		spec.Description[language] = text + declarations(callable, language)
	}
	described := *tool
	described.Spec = &spec
	return &described
}

// minDeclaration is the least that a declaration takes, in bytes.
const minDeclaration = len("tools.a(args: {}): Promise<any>\n")

// declarations returns the end of a description: the declarations of tools, or nothing if they are too long.
func declarations(tools []*catalog.Tool, locale string) string {
	var b strings.Builder
	for _, tool := range tools {
		b.WriteString("\n" + typescript.Declare(declared(tool, locale)))
		if b.Len() > maxDeclarations {
			return ""
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\n" + declarationsFollow.In(locale) + "\n" + b.String()
}

// declared returns the description of a tool for a declaration.
func declared(tool *catalog.Tool, locale string) *typescript.Tool {
	hints := tool.Hints()
	return &typescript.Tool{
		Name: tool.Name, Title: tool.Spec.Title.In(locale), Description: tool.Spec.Description.In(locale),
		Input: tool.Spec.InputSchema, Output: tool.Spec.OutputSchema,
		ReadOnly: hints.ReadOnlyHint != nil && *hints.ReadOnlyHint,
	}
}
