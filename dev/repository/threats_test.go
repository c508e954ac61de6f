package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// evidence is a cell of a table that names tests: `host/sandbox: TestState`, `TestLog`.
	evidence = regexp.MustCompile("`([a-z][a-z0-9/]*): ((?:Test|Fuzz)[A-Za-z0-9]+)`((?:, `(?:Test|Fuzz)[A-Za-z0-9]+`)*)")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile(`(?:Test|Fuzz)[A-Za-z0-9]+`)
)

// TestThreatsAreCovered checks that every test that the security model and the threat model name is there, and that each
// threat names one.
func TestThreatsAreCovered(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for _, page := range []string{"docs/security.md", "docs/threat-model.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range evidence.FindAllStringSubmatch(string(text), -1) {
			there := testsOf(t, match[1])
			for _, name := range append(testName.FindAllString(match[3], -1), match[2]) {
				if !there[name] {
					t.Errorf("%s names %s: %s, which is not there", page, match[1], name)
				}
			}
		}
	}
	text, err := os.ReadFile("docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		id := regexp.MustCompile(`^\| ([STRIDE]\d+) \|`).FindStringSubmatch(line)
		if id == nil {
			continue
		}
		if seen[id[1]] {
			t.Errorf("two threats are called %s", id[1])
		}
		seen[id[1]] = true
		if !evidence.MatchString(line) {
			t.Errorf("threat %s names no test", id[1])
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d threats found: has the form of the table changed?", len(seen))
	}
}

// testsOf returns the names of the tests in a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
	}
	return names
}
