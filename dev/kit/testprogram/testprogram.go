// Package testprogram provides what tests need of the machine. Find returns the path of a program of another project,
// such as a database server. Missing skips a test that lacks something, or fails it where all tests have to run.
// RunUnprivileged runs a test without root's rights.
package testprogram

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// required is the environment variable that is 1 where all tests have to run, such as in CI.
const required = "TEST_REQUIRE"

// Find returns the path of a program. It searches PATH and then the directories alsoIn, which may be patterns of
// filepath.Match; the last match counts. If there is no such program, Find calls Missing.
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
	Missing(t, "the program "+name+" is not in "+strings.Join(append([]string{"PATH"}, alsoIn...), ", "))
	return ""
}

// Missing skips the test, which cannot run for the given reason, or fails it if TEST_REQUIRE is 1.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(required) == "1" {
		t.Fatalf("%s, and %s=1 requires it", reason, required)
	}
	t.Skipf("%s", reason)
}
