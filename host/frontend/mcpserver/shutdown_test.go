package mcpserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/pipeline"
)

// TestShutdownDrains: calls in flight finish, later ones are refused, streams end.
func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		started, proceed := make(chan struct{}), make(chan struct{})
		calls := caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
			close(started)
			select {
			case <-proceed:
				return ok(text("done"))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		s := newServer(t, offer(t, nil, "x"), calls, nil)
		options, _ := watching() // which opens a stream
		client := frontend.connect(t, s, version, options)
		answer := make(chan error, 1)
		go func() {
			result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
			if err == nil && result.IsError {
				err = errors.New("tool error")
			}
			answer <- err
		}()
		<-started
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		<-s.draining.Done()
		close(proceed)
		if err := <-answer; err != nil {
			t.Errorf("the call in flight: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if n := s.sessions.count(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// TestShutdownStopsWhatDoesNotEnd: when its context ends, calls in flight are stopped, and answered with an error.
func TestShutdownStopsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		started, stopped := make(chan struct{}), make(chan struct{})
		calls := caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
			close(started)
			<-ctx.Done()
			close(stopped)
			return nil, ctx.Err()
		})
		s := newServer(t, offer(t, nil, "x"), calls, nil)
		client := frontend.connect(t, s, version, nil)
		answer := make(chan error, 1)
		go func() {
			_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
			answer <- err
		}()
		<-started
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v, want that the deadline was exceeded", err)
		}
		<-stopped
		var told *jsonrpc.Error
		if err := <-answer; !errors.As(err, &told) {
			t.Errorf("the call got %v", err)
		}
	})
}
