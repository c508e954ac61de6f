// Package testprogram finds the programs of other projects that tests run: servers, proxies, browsers, checkers; and
// says what becomes of a test that lacks something.
package testprogram

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// required is the environment variable that makes what is missing a failure when it is 1: where tests are to run in
// full.
const required = "TEST_REQUIRE"

// Find returns the path of the program called name: from PATH, else from the directories alsoIn, which may be patterns
// of filepath.Match, of whose matches the last one counts. A test whose program is nowhere is skipped, or fails where
// TEST_REQUIRE is 1.
func Find(t testing.TB, name string, alsoIn ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range alsoIn {
		matches, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("look for %s in %s: %v", name, dir, err)
		}
		if len(matches) > 0 {
			return matches[len(matches)-1]
		}
	}
	Missing(t, "the program "+name+" is neither in PATH nor in "+strings.Join(alsoIn, ", "))
	return ""
}

// Missing skips a test that cannot run, for that reason, or fails it where TEST_REQUIRE is 1.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(required) == "1" {
		t.Fatalf("%s, and %s=1 requires it", reason, required)
	}
	t.Skipf("%s", reason)
}
