package sandbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/pdk/abi"
)

// TestTimeOfQuestions: a guest has a deadline, but not while a broker asks a person.
func TestTimeOfQuestions(t *testing.T) {
	t.Parallel()
	asking := broker.Module{Name: deniedHTTP.Name, Functions: append([]broker.Function(nil), deniedHTTP.Functions...)}
	refuse := asking.Functions[0].Do
	asking.Functions[0].Do = func(ctx context.Context, c *broker.Call, args []uint64) uint64 {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the guest has no deadline")
		}
		if err := c.Ask(ctx, broker.Question{}); err != nil {
			t.Error(err)
		}
		return refuse(ctx, c, args)
	}
	engine := newEngine(t, 0)
	plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: probe(t), Modules: []broker.Module{asking},
		Limits: manifest.Limits{Time: time.Hour}})
	t.Cleanup(func() { _ = plugin.Close() })
	asked := false
	_, err := plugin.Call(t.Context(), &catalog.Invocation{
		Request: &abi.Request{Method: abi.CallTool, Name: "fetch",
			Arguments: []byte(`{"text":"https://example.com/"}`)},
		Ask: func(ctx context.Context, _ broker.Question) error {
			asked = true
			defer callclock.Pause(ctx)()
			if deadline, ok := ctx.Deadline(); ok {
				t.Errorf("while a person is asked, the deadline is %v", deadline)
			}
			return nil
		},
	})
	if err != nil || !asked {
		t.Errorf("asked: %v, %v", asked, err)
	}
}
