package secret

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	s := New(Source{Command: []string{"cat", path}})
	read := func() string {
		t.Helper()
		text, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := read(); got != "first" {
		t.Errorf("read %q", got)
	}
	write("second")
	if got := read(); got != "first" {
		t.Errorf("the command ran again and gave %q", got)
	}
	s.Forget()
	if got := read(); got != "second" {
		t.Errorf("after Forget it is %q", got)
	}
	if _, err := New(Source{File: path + ".missing"}).Read(t.Context()); err == nil {
		t.Error("a missing file was read")
	}
}
