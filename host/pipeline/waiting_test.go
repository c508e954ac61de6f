package pipeline_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/pdk/abi"
)

// slow is an Approvals that answers after a while.
type slow time.Duration

func (s slow) Ask(ctx context.Context, _ *approval.Question, _ approval.Prompter) (string, error) {
	select {
	case <-time.After(time.Duration(s)):
		return "boss", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// asking is a backend that computes for a while, asks a person, and does not end by itself.
type asking struct{}

func (asking) Call(ctx context.Context, i *catalog.Invocation) (*abi.Response, error) {
	time.Sleep(20 * time.Second)
	if err := i.Ask(ctx, broker.Question{Text: "rm -r x"}); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestTimeStandsStill: neither the time that the policy's question takes nor that of a question in the middle of a call
// counts against the caller's limit.
func TestTimeStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGoverned(t, func(o *pipeline.Options) { o.Approvals = slow(time.Hour) })
		m, err := manifest.Parse([]byte("name: slow\nversion: 1.0.0\ndescription: d\ntools:\n  - {name: p_free, " +
			"description: d, inputSchema: {type: object}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		g.catalog.Remove("test")
		if err := g.catalog.Put(catalog.Source{Name: "test", Backend: asking{}}, m); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, clock, stop := callclock.Start(t.Context(), 30*time.Second)
		defer stop()
		_, _ = g.Call(ctx, &pipeline.Call{
			Caller:  pipeline.Caller{Frontend: pipeline.FrontendAgent},
			Request: abi.Request{Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":11}`)},
		})
		if took := time.Since(began); took != 2*time.Hour+30*time.Second || !clock.Expired() {
			t.Errorf("the call took %v, want two questions of an hour and 30 seconds", took)
		}
	})
}

// TestWaitingIsReported checks that clients get progress reports while a call waits and none while it runs.
func TestWaitingIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer   time.Duration
		frontend string
		want     []time.Duration
	}{
		"at once": {100 * time.Millisecond, pipeline.FrontendHTTP, nil},
		"soon":    {time.Second, pipeline.FrontendHTTP, []time.Duration{200 * time.Millisecond}},
		"later": {25 * time.Second, pipeline.FrontendStdio,
			[]time.Duration{200 * time.Millisecond, 10_200 * time.Millisecond, 20_200 * time.Millisecond}},
		"at a terminal": {25 * time.Second, pipeline.FrontendTerminal, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGoverned(t, func(o *pipeline.Options) { o.Approvals = slow(test.answer) })
			began := time.Now()
			var told []time.Duration
			result, err := g.Call(t.Context(), &pipeline.Call{
				Caller:  pipeline.Caller{Frontend: test.frontend},
				Request: abi.Request{Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":11}`)},
				Progress: func(p abi.Progress) {
					if p.Message != "Waiting for approval." {
						t.Errorf("%s: told %+v", name, p)
					}
					told = append(told, time.Since(began))
				},
			})
			if err != nil || result.Outcome != pipeline.OK || !slices.Equal(told, test.want) {
				t.Errorf("%s: %v, told after %v, want %v", name, err, told, test.want)
			}
		})
	}
}
