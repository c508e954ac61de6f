package terminal

import (
	"testing"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/visible"
)

// TestAllowRule: the rule that is shown is valid, and allows the call of this caller alone, whatever the names are.
func TestAllowRule(t *testing.T) {
	t.Parallel()
	for _, q := range []approval.Question{
		{Tool: "write_rows", Caller: approval.Caller{Frontend: "terminal", User: "aki"}},
		{Tool: "write_rows", Caller: approval.Caller{Frontend: "mcp-http", Tenant: "example", User: "aki"}},
		{Tool: "write_rows", Caller: approval.Caller{Frontend: "terminal", User: "a\"]\n  - name: \u202e*"}},
	} {
		p, err := policy.Parse([]byte("version: 1\ndefault: ask\nrules:\n" + visible.Escape(allowRule(&q))))
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			continue
		}
		call := policy.Call{Tool: q.Tool, Frontend: q.Caller.Frontend, Tenant: q.Caller.Tenant, User: q.Caller.User}
		if d := p.Decide(&call); d.Action != policy.Allow {
			t.Errorf("%+v: %+v", q, d)
		}
		call.User = "bo"
		if d := p.Decide(&call); d.Action != policy.Ask {
			t.Errorf("somebody else: %+v", d)
		}
	}
}
