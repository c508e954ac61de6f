package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// TestDevPlugin: after a save the plugin is built, brought into service and called.
func TestDevPlugin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invoke(t, dir, "plugin", "new", "greet").want(t, exitOK)
	put(t, filepath.Join(dir, "greet", "examples.yaml"), []byte("- {tool: greet, arguments: {name: Aki}}\n"))
	ctx, cancel := context.WithCancel(testwait.Context(t))
	out := new(watched)
	done := make(chan int, 1)
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: out, stderr: out}
		done <- a.run(ctx, []string{"-C", dir, "dev", "plugin", "greet"})
	}()
	wait := func(text string) {
		t.Helper()
		select {
		case <-out.await(text):
		case code := <-done:
			done <- code
			t.Fatalf("ended with %d:\n%s", code, out)
		}
	}
	wait("Hello, Aki")
	wait("after the save.")
	file := filepath.Join(dir, "greet", "main.go")
	source := must(os.ReadFile(file))
	put(t, file, bytes.ReplaceAll(source, []byte("Hello, "), []byte("Good morning, ")))
	wait("Good morning, Aki")
	put(t, file, []byte("package main\n\nfunc main() { broken }\n"))
	wait("The version before stays in service.")
	cancel()
	<-done
}
