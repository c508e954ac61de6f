package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/kit/leaktest"
	"github.com/hako-run/hako/dev/kit/postgrestest"
)

// TestStartsThatFail: "hako serve" with all its frontends leaves nothing behind, wherever its start fails.
func TestStartsThatFail(t *testing.T) {
	t.Parallel()
	start := func() []string {
		f := fakes.New()
		server := httptest.NewServer(f)
		t.Cleanup(server.Close)
		secrets := t.TempDir()
		must(f.WriteConfig(secrets, server.URL))
		if err := os.WriteFile(filepath.Join(secrets, "slack-app.token"), []byte(fakes.SlackAppToken), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"VENDORS=" + server.URL, "SECRETS=" + secrets, "DATABASE=" + postgrestest.Start(t)}
	}
	leaktest.RunBeside(t, start, map[string]leaktest.Construct{
		"serve": func(ctx context.Context, dir string) (func() error, error) {
			return startServe(ctx, dir, "")
		},
		"serve with a bot and agents": func(ctx context.Context, dir string) (func() error, error) {
			stands := strings.NewReplacer("URL", os.Getenv("VENDORS"), "file: ", "file: "+os.Getenv("SECRETS")+"/")
			return startServe(ctx, dir, stands.Replace(`
llm:
  models: [{name: local, provider: anthropic, model: fake, baseUrl: URL/anthropic/, key: {file: model.key}}]
agent: {key: {file: model.key}, baseUrl: URL/managedagents/, agents: [agent_stand_in]}
`+demo.SlackWorkspace))
		},
		"serve over PostgreSQL": func(ctx context.Context, dir string) (func() error, error) {
			return startServe(ctx, dir, "store: "+os.Getenv("DATABASE")+"\naudit: {key: {file: audit.key}}\n")
		},
	})
}

// startServe starts hako serve in the directory with a configuration to which more is added, and returns when it serves.
func startServe(ctx context.Context, dir, more string) (end func() error, err error) {
	for name, content := range map[string]string{
		"upstreams.json": `{"mcpServers": {"a": {"command": "cat"}}}`,
		"audit.key":      strings.Repeat("AAAA", 10) + "AAA=\n",
		"hako.yaml": `plugins: [plugins]
metrics: {address: "127.0.0.1:0"}
console: {address: "127.0.0.1:0"}
upstreams: upstreams.json
` + more,
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "plugins"), 0o700)); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	stderr, done := new(watched), make(chan int, 1)
	ready := stderr.await("Next:")
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr, exit: func(int) {}}
		done <- a.run(running, []string{"-C", dir, "serve", "--http", "127.0.0.1:0"})
	}()
	select {
	case <-ready:
		return func() error {
			stop()
			if code := <-done; code != exitOK && code != exitInterrupted {
				return errors.New(stderr.String())
			}
			return nil
		}, nil
	case code := <-done:
		stop()
		return nil, fmt.Errorf("exit code %d: %s", code, stderr)
	}
}
