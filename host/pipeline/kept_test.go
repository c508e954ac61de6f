package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// keeping is an observer that keeps all that it is given.
type keeping struct {
	mu      sync.Mutex
	running []*pipeline.Running
	ended   []pipeline.Record
}

func (k *keeping) CallStarted(r *pipeline.Running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = append(k.running, r)
}

func (k *keeping) CallEnded(r pipeline.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, r)
}

// marked is a context key.
type marked struct{}

// TestKeptCalls: an observer that keeps every call keeps neither its request, nor its response, nor its context,
// however the call ends. All texts of a caller are parts of the request here.
func TestKeptCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kept := new(keeping)
	p := pipeline.New(f.catalog, &pipeline.Options{Observer: kept, Settings: pipeline.Settings{
		AuditFields: map[string][]string{"p_loose": {"n", "output_summary"}}}})
	large := func(text string) string { return text + strings.Repeat(" ", 1<<20) }
	var tracker memorytest.Tracker
	current := ""
	track := func(what, text string) string { return tracker.Text(current+": the "+what, text) }
	for name, c := range map[string]struct {
		tool   string
		answer func() (*abi.Response, error)
		want   pipeline.Outcome
	}{
		"ok":         {"p_loose", nil, pipeline.OK},
		"an unknown": {"p_missing", nil, pipeline.NotFound},
		"arguments":  {"p_free", nil, pipeline.InvalidArguments},
		"a tool error": {"p_loose", func() (*abi.Response, error) {
			return &abi.Response{IsError: true, Content: text(track("response", large("no"))).Content}, nil
		}, pipeline.ToolError},
		"a trap": {"p_loose", func() (*abi.Response, error) {
			return nil, &catalog.GuestError{Plugin: "test", Reason: track("error", large("stopped"))}
		}, pipeline.Trap},
		"an error": {"p_loose", func() (*abi.Response, error) { return nil, errors.New(track("error", large("disk"))) },
			pipeline.Internal},
		"stopped": {"p_loose", func() (*abi.Response, error) {
			kept.running[len(kept.running)-1].Stop()
			return nil, context.Canceled
		}, pipeline.Stopped},
	} {
		current = name
		if f.backend.answer = c.answer; c.answer == nil {
			f.backend.answer = func() (*abi.Response, error) { return text(track("response", large("fine"))), nil }
		}
		func() {
			body := track("text of the caller", large(`{"n":"one","user":"ann"}`))
			of := func(part string) string { i := strings.Index(body, part); return body[i : i+len(part)] }
			inContext := track("context", large(name))
			call := &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: c.tool,
				Arguments: json.RawMessage(body)}}
			tracker.Bytes(name+": the arguments", call.Request.Arguments)
			call.Caller = pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: of("ann"), Client: of("user"),
				RequestID: of("n"), Groups: []string{of("one")}, Session: of("ann")}
			_, _ = p.Call(context.WithValue(t.Context(), marked{}, inContext), call)
		}()
		f.backend = backend{} // it keeps the last request
		if got := kept.ended[len(kept.ended)-1].Outcome; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	tracker.Check(t)
	runtime.KeepAlive(kept)
}
