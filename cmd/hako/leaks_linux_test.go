package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/leaktest"
)

// TestStartsThatFail: "hako serve" with all its frontends leaves nothing behind, wherever its start fails.
func TestStartsThatFail(t *testing.T) {
	t.Parallel()
	leaktest.Run(t, map[string]leaktest.Construct{"serve": func(ctx context.Context, dir string) (func() error, error) {
		err := errors.Join(os.Mkdir(filepath.Join(dir, "plugins"), 0o700),
			os.WriteFile(filepath.Join(dir, "upstreams.json"), []byte(`{"mcpServers": {"a": {"command": "cat"}}}`),
				0o600),
			os.WriteFile(filepath.Join(dir, "hako.yaml"), []byte(`plugins: [plugins]
metrics: {address: "127.0.0.1:0"}
console: {address: "127.0.0.1:0"}
upstreams: upstreams.json
`), 0o600))
		if err != nil {
			return nil, err
		}
		running, stop := context.WithCancel(ctx)
		stderr, done := new(watched), make(chan int, 1)
		ready := stderr.await("Next:")
		go func() {
			a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr, exit: func(int) {}}
			done <- a.run(running, []string{"-C", dir, "serve", "--http", "127.0.0.1:0"})
		}()
		end := func() error {
			stop()
			if code := <-done; code != exitOK && code != exitInterrupted {
				return errors.New(stderr.String())
			}
			return nil
		}
		select {
		case <-ready:
			return end, nil
		case code := <-done:
			done <- code
			stop()
			return nil, errors.New(stderr.String())
		}
	}})
}
