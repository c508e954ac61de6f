package grant

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/toolpattern"
)

// anyTool is the pattern for all tools.
const anyTool = "*"

func (w wording) tools(p *manifest.ToolsPermission, language string) string {
	line := w.anyTool
	if !slices.Contains(p.Names, anyTool) {
		line = w.f(w.toolNames, strings.Join(sorted(p.Names), w.comma))
	}
	return w.reason(line, p.Reason, language)
}

// toolsAdditions lists the tools in asked beyond approved.
func (w wording) toolsAdditions(approved, asked *manifest.ToolsPermission, language string) []string {
	switch {
	case asked == nil:
		return nil
	case approved == nil:
		return []string{w.tools(asked, language)}
	}
	more := slices.DeleteFunc(sorted(asked.Names), func(name string) bool { return coversTool(approved.Names, name) })
	switch {
	case len(more) == 0:
		return nil
	case slices.Contains(more, anyTool):
		return []string{w.addAnyTool}
	}
	return []string{w.f(w.addTools, strings.Join(more, w.comma))}
}

// coversTool reports whether one of the patterns matches every tool that name matches. Of patterns only equal ones and
// "*" are known to.
func coversTool(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		p := toolpattern.Compile(text)
		return text == name || text == anyTool || !strings.Contains(name, "*") && p.Matches(name)
	})
}
