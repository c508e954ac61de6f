package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// TestLinks checks that what the documents link to within the repository is there, headings included.
func TestLinks(t *testing.T) {
	t.Parallel()
	inRoot(t)
	walk(t, func(path string) error {
		if filepath.Ext(path) != ".md" {
			return nil
		}
		for _, match := range link.FindAllStringSubmatch(document(t, path), -1) {
			target, anchor := match[1], match[2]
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, target)
			} else if anchor != "" && filepath.Ext(to) == ".md" && !anchors(document(t, to))[anchor] {
				t.Errorf("%s links to %s#%s, where no such heading is", path, target, anchor)
			}
		}
		return nil
	}, "testdata", "template")
}

// document is the text of a file without its code blocks.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// anchors are the names of a document's headings as GitHub makes them.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])] = true
	}
	return names
}
