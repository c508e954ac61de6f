package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// declared is a cell of CONTRIBUTING.md that names a function, method or type: `host/pipeline: Pipeline.Call`.
var declared = regexp.MustCompile("\\| `([a-z/]+): ([A-Za-z.]+)` \\|")

// TestRequestPath checks that the functions of the request path in CONTRIBUTING.md exist in the packages it names.
func TestRequestPath(t *testing.T) {
	t.Parallel()
	inRoot(t)
	steps := declared.FindAllStringSubmatch(string(read(t, "CONTRIBUTING.md")), -1)
	if len(steps) < 10 {
		t.Errorf("%d steps found: has the form of the table changed?", len(steps))
	}
	for _, step := range steps {
		pattern := `(?m)^(func|type) ` + step[2] + `\b`
		if receiver, method, ok := strings.Cut(step[2], "."); ok {
			pattern = `(?m)^func \(\w+ \*?` + receiver + `\) ` + method + `\(`
		}
		if !declares(t, step[1], regexp.MustCompile(pattern)) {
			t.Errorf("CONTRIBUTING.md names %s in %s, which does not declare it", step[2], step[1])
		}
	}
}

// declares reports whether a Go file of the folder, tests aside, matches the pattern.
func declares(t *testing.T, folder string, pattern *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") && pattern.Match(read(t, file)) {
			return true
		}
	}
	return false
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
