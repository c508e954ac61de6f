package bench

import (
	"fmt"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
)

// growRules measures policies of many rules: to read one, to decide about a call of a caller that is not known yet, and
// to find which of 100 tools such a caller sees.
func (r *results) growRules(t *testing.T) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		text := []byte(policyOf(n))
		var p *policy.Policy
		took := perRun(t, 1, func() (err error) {
			p, err = policy.Parse(text)
			return err
		})
		r.addPoint(t, "rules", n, "read_ms", ms(took), "ms")
		callers := 0
		call := func(tool int) *policy.Call {
			return &policy.Call{Tool: fmt.Sprint("tool", tool), Plugin: "nothing", Frontend: pipeline.FrontendHTTP,
				Tenant: "acme", User: fmt.Sprint("stranger ", callers)}
		}
		took = perRun(t, samples, func() error {
			callers++
			c := call(0)
			c.Arguments = []byte(`{"text":"hello"}`)
			p.Decide(c)
			return nil
		})
		r.addPoint(t, "rules", n, "decide_us", us(took), "us")
		r.addPoint(t, "rules", n, "visible_us", us(perRun(t, 10, func() error {
			callers++
			for tool := range 100 {
				p.Visible(call(tool))
			}
			return nil
		})), "us")
	}
}

// growCallers measures calls of many callers, of which each calls twice.
func (r *results) growCallers(t *testing.T) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		p := nothingPipeline(t, governance(t, 100))
		calls := 0
		took := perRun(t, 2*n, func() error {
			calls++
			_, err := p.Call(t.Context(), nothingCall(fmt.Sprint("caller ", calls%n)))
			return err
		})
		r.addPoint(t, "callers", n, "call_us", us(took), "us")
	}
}
