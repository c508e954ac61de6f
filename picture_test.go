package hako_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// pictured are the packages in the picture of CONTRIBUTING.md. Each stands for the packages below it, except host.
var pictured = []string{
	"cmd/hako", "host/app/server", "host/frontend/mcpserver", "host/frontend/slackbot", "host/frontend/console", "host/frontend/chat", "host/frontend/agent", "host",
	"host/pipeline", "host/govern/approval", "host/govern/policy", "host/govern/quota", "host/govern/secretscan", "host/govern/audit", "host/catalog",
	"host/upstream/mcpclient", "host/extism", "host/sandbox", "host/broker", "host/brokers/file", "host/brokers/httpbroker",
	"host/brokers/sqlbroker", "host/brokers/execbroker", "host/grant", "host/manifest", "host/credential", "host/frontend/llm",
	"host/store",
}

// TestPicture compares the picture of CONTRIBUTING.md with the imports.
func TestPicture(t *testing.T) {
	t.Parallel()
	if want := picture(packages(t)); !strings.Contains(string(read(t, "CONTRIBUTING.md")), want) {
		t.Errorf("the picture of the packages in CONTRIBUTING.md should be\n%s", want)
	}
}

// picture draws the imports between the pictured packages, without those that others imply.
func picture(all []goPackage) string {
	imports := map[string]map[string]bool{}
	for _, p := range all {
		from := box(p.ImportPath)
		for _, imported := range p.Imports {
			if to := box(imported); from != "" && to != "" && from != to && !strings.HasSuffix(p.ImportPath, "test") {
				if imports[from] == nil {
					imports[from] = map[string]bool{}
				}
				imports[from][to] = true
			}
		}
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return imports[from][to] || slices.ContainsFunc(slices.Collect(maps.Keys(imports[from])), func(next string) bool {
			return reaches(next, to)
		})
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart LR\n")
	for _, from := range pictured {
		fmt.Fprintf(&b, "  %s[%s]\n", id(from), from)
	}
	for _, from := range pictured {
		for _, to := range pictured {
			implied := slices.ContainsFunc(slices.Collect(maps.Keys(imports[from])), func(next string) bool {
				return next != to && reaches(next, to)
			})
			if imports[from][to] && !implied {
				fmt.Fprintf(&b, "  %s --> %s\n", id(from), id(to))
			}
		}
	}
	return b.String() + "```\n"
}

func id(name string) string { return strings.ReplaceAll(name, "/", "_") }

// box returns the pictured package that stands for a package, or "".
func box(path string) (found string) {
	name := strings.TrimPrefix(path, module+"/")
	for _, tree := range pictured {
		if (name == tree || tree != "host" && under(name, tree)) && len(tree) > len(found) {
			found = tree
		}
	}
	return found
}
