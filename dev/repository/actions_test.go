package repository_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recordedAction matches code that records an operator's action, such as Action: "plugin.approve".
var recordedAction = regexp.MustCompile(`Action: +"([a-z]+\.[a-z._]+)"`)

// TestActionsAreDocumented compares the actions of audit records with the table of docs/audit.md.
func TestActionsAreDocumented(t *testing.T) {
	t.Parallel()
	inRoot(t)
	table, found := string(read(t, "docs/audit.md")), 0
	for _, tree := range []string{"cmd", "host", "internal"} {
		err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, match := range recordedAction.FindAllStringSubmatch(string(read(t, path)), -1) {
				if found++; !strings.Contains(table, "`"+match[1]+"`") {
					t.Errorf("%s records %s, which docs/audit.md does not have", path, match[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("%d actions found: are they written in another way?", found)
	}
}
