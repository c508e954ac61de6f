//go:build unix

package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
)

// TestServeAwaitsItsDatabase: a replica that starts before its database is there waits, and says so although nobody is
// greeted yet; other commands say at once what is wrong.
func TestServeAwaitsItsDatabase(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	dir := over(t, server.Database(t), "postgres: {wait: 24h}\n")
	server.Stop(t)
	invoke(t, dir, "approvals").want(t, exitUsage, "the database cannot be reached")
	stderr, done := new(watched), make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr}
		done <- a.run(ctx, []string{"-C", dir, "serve", "--http", "127.0.0.1:0"})
	}()
	<-stderr.await("waiting for the database")
	server.Start(t)
	select {
	case <-stderr.await("Next:"):
	case code := <-done:
		t.Fatalf("it ends with %d:\n%s", code, stderr)
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("it ends with %d:\n%s", code, stderr)
	}
}

// TestServeDoesNotAwaitForEver: the wait ends, and is none where it would not help.
func TestServeDoesNotAwaitForEver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		away       bool
		wait, want string
	}{
		"the server is away": {true, "1ms", "waited for 1ms: postgres.wait"},
		"no such database":   {false, "24h", "create the database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgrestest.NewServer(t)
			dir := over(t, server.URL("missing"), "postgres: {wait: "+test.wait+"}\n")
			if test.away {
				server.Stop(t)
			}
			invoke(t, dir, "serve", "--http", "127.0.0.1:0").want(t, exitUsage, test.want)
		})
	}
}
