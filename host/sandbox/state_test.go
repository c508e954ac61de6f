package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// sessionCall calls a tool of the guest probe in a session and returns the text of the response.
func sessionCall(ctx context.Context, plugin *sandbox.Plugin, tenant, session, tool string) (string, error) {
	response, err := plugin.Call(ctx, &catalog.Invocation{
		Request: &abi.Request{Method: abi.CallTool, Name: tool,
			Arguments: json.RawMessage("{}")}, Tenant: tenant, Session: session,
	})
	if err != nil {
		return "", err
	}
	return response.Content[0].Text, nil
}

// TestState checks which calls share state. Callers are sessions, with the tenant before a slash.
func TestState(t *testing.T) {
	t.Parallel()
	type step struct{ caller, tool, want string }
	for _, test := range []struct {
		state manifest.State
		steps []step
	}{
		{manifest.StateCall, []step{{"a", "count", "1"}, {"a", "count", "1"}, {"", "count", "1"}}},
		{manifest.StateSession, []step{
			{"a", "count", "1"}, {"a", "count", "2"}, {"b", "count", "1"}, {"a", "count", "3"}, {"b", "count", "2"},
			{"", "count", "1"}, {"", "count", "1"}, {"a", "trap", ""}, {"a", "count", "1"}, {"b", "count", "3"},
		}},
		{manifest.StateShared, []step{{"a", "count", "1"}, {"b", "count", "2"}, {"", "count", "3"}, {"", "trap", ""},
			{"a", "count", "1"}}},

		{manifest.StateCall, []step{{"x/a", "count", "1"}, {"y/a", "count", "1"}}},
		{manifest.StateSession, []step{{"x/a", "count", "1"}, {"y/a", "count", "1"}, {"a", "count", "1"},
			{"x/a", "count", "2"}, {"y/a", "count", "2"}}},
		{manifest.StateShared, []step{
			{"x/a", "count", "1"}, {"y/a", "count", "1"}, {"y/b", "count", "2"}, {"x/", "count", "2"}, {"", "count",
				"1"}, {"x/b", "count", "3"},
			{"x/", "trap", ""}, {"x/", "count", "1"}, {"y/", "count", "3"},
		}},
	} {
		t.Run(string(test.state), func(t *testing.T) {
			t.Parallel()
			plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: test.state})
			for i, step := range test.steps {
				tenant, session, found := strings.Cut(step.caller, "/")
				if !found {
					tenant, session = "", step.caller
				}
				got, err := sessionCall(t.Context(), plugin, tenant, session, step.tool)
				if got != step.want || (err == nil) != (step.want != "") {
					t.Errorf("step %d: %s for %q = %q, %v; want %q", i, step.tool, step.caller, got, err, step.want)
				}
			}
		})
	}
}

// TestSessionsAreBounded checks that the least recently used session is removed when there are too many.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: manifest.StateSession})
	count := func(session string) string {
		got, err := sessionCall(t.Context(), plugin, "", session, "count")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i := range 65 {
		count(fmt.Sprint(i))
	}
	if got := count("64"); got != "2" {
		t.Errorf("the newest session: %s", got)
	}
	if got := count("0"); got != "1" {
		t.Errorf("the oldest session of 65: %s", got)
	}
}

// TestSharedStatesAreBounded checks that the least recently used tenant's state is removed when there are too many.
func TestSharedStatesAreBounded(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: manifest.StateShared})
	count := func(tenant string) string {
		got, err := sessionCall(t.Context(), plugin, tenant, "", "count")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i := range 65 {
		count(fmt.Sprint(i))
	}
	if got := count("64"); got != "2" {
		t.Errorf("the newest tenant: %s", got)
	}
	if got := count("0"); got != "1" {
		t.Errorf("the oldest tenant of 65: %s", got)
	}
}

// TestSessionTakesTurns checks that calls of one session run one after another and do not delay other sessions.
func TestSessionTakesTurns(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{
		State: manifest.StateSession, Limits: manifest.Limits{Concurrency: 2, Queue: 3, QueueWait: patience},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var exceeded *limit.Error
	refused := make(chan error, 10)
	for range 5 {
		group.Go(func() {
			_, err := sessionCall(ctx, plugin, "", "greedy", "loop")
			if errors.As(err, &exceeded) {
				refused <- err
			}
		})
	}
	if err := <-refused; !errors.As(err, &exceeded) || exceeded.Limit != limit.Queue {
		t.Errorf("the fifth call at once: %v", err)
	}
	if got, err := sessionCall(t.Context(), plugin, "", "other", "count"); err != nil || got != "1" {
		t.Errorf("another session: %q, %v", got, err)
	}
	cancel()
	group.Wait()
}
