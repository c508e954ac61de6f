package testprogram

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// recorder takes what Find says about a test, in the test's place.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) { r.skipped = fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	panic(r)
}

func find(t *testing.T, name string, alsoIn ...string) (path string, r *recorder) {
	r = &recorder{TB: t}
	defer func() {
		if stopped := recover(); stopped != nil && stopped != any(r) {
			panic(stopped)
		}
	}()
	return Find(r, name, alsoIn...), r
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"14", "15"} {
		path := filepath.Join(dir, version, "no-such-server")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if path, _ := find(t, "no-such-server", t.TempDir(), filepath.Join(dir, "*")); path != filepath.Join(dir, "15", "no-such-server") {
		t.Errorf("found %q", path)
	}
	if path, _ := find(t, "go"); path == "" {
		t.Error("go is not found in PATH")
	}
	t.Setenv(required, "")
	if _, r := find(t, "no-such-server"); r.skipped == "" || r.failed != "" {
		t.Errorf("not required: skipped %q, failed %q", r.skipped, r.failed)
	}
	t.Setenv(required, "1")
	if _, r := find(t, "no-such-server"); r.skipped != "" || r.failed == "" {
		t.Errorf("required: skipped %q, failed %q", r.skipped, r.failed)
	}
}
