package gobuild

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPlugin(t *testing.T) {
	t.Parallel()
	dir := module(t, "package main\n\nfunc main() {}\n")
	first, err := Plugin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(first, []byte("\x00asm\x01\x00\x00\x00")) {
		t.Errorf("starts with %q, want a core module", first[:8])
	}
	second, err := Plugin(t.Context(), module(t, "package main\n\nfunc main() {}\n"))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same sources elsewhere gave other bytes (%v)", err)
	}
}

func TestPluginFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source, want string }{
		"a mistake":     {"package main\n\nfunc main() { undefined() }\n", "undefined: undefined"},
		"not a program": {"package library\n", "requires exactly one main package"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Plugin(t.Context(), module(t, test.source))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPluginCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Plugin(ctx, module(t, "package main\n\nfunc main() {}\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
