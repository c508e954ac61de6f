package mcpserver

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// askingPolicy asks about one tool, about another only with certain arguments, and denies a third.
const askingPolicy = `
version: 1
rules:
  - {name: ask first, action: ask, tools: [erase], reason: {en: it erases}}
  - {name: ask about much, action: ask, tools: [move], when: arguments.n > 10}
  - {name: never, action: deny, tools: [secret]}
`

// governed is a server whose calls the policy decides about.
type governed struct {
	*Server
	approvals *approval.Queue
	// done counts the calls that reached the plugin.
	done *atomic.Int32
}

func newGoverned(t *testing.T, rules string, approvals *approval.Options, options *Options) *governed {
	t.Helper()
	done := new(atomic.Int32)
	c := offer(t, func(context.Context, *abi.Request, func(abi.Progress)) (*abi.Response, error) {
		done.Add(1)
		return text("done"), nil
	}, "erase", "move", "look", "secret")
	g := govern(t, c, rules, approvals, options)
	g.done = done
	return g
}

// govern has a policy decide about the calls of what c offers.
func govern(t *testing.T, c *catalog.Catalog, rulesText string, approvals *approval.Options,
	options *Options) *governed {
	t.Helper()
	rules, err := policy.Parse([]byte(rulesText))
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, t.TempDir())
	g := new(governed)
	if g.approvals, err = approval.New(t.Context(), s, approvals); err != nil {
		t.Fatal(err)
	}
	calls := pipeline.New(c, &pipeline.Options{Governance: pipeline.Governance{
		Policy: func() *policy.Policy { return rules }, Approvals: g.approvals,
	}})
	g.Server = newServer(t, c, calls, options)
	return g
}

// person answers forms.
type person func(ctx context.Context, form *mcp.ElicitParams) (*mcp.ElicitResult, error)

func (p person) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult,
		error) {
		return p(ctx, req.Params)
	}}
}

func answering(action string, content map[string]any) person {
	return func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: action, Content: content}, nil
	}
}

// callWith calls a tool with an argument, and returns what came of it.
func callWith(t *testing.T, session *mcp.ClientSession, name string, n int) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"n": n}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestApproval(t *testing.T) {
	t.Parallel()
	yes := map[string]any{"approve": true}
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		for name, test := range map[string]struct {
			person person
			want   string
		}{
			"yes":               {answering("accept", yes), "done"},
			"no":                {answering("accept", map[string]any{"approve": false}), "it was refused"},
			"declined":          {answering("decline", nil), "it was refused"},
			"declined with yes": {answering("decline", yes), "it was refused"},
			"dismissed":         {answering("cancel", nil), "it was refused"},
			"nothing":           {answering("accept", nil), "it was refused"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := newGoverned(t, askingPolicy, nil, nil)
				var form *mcp.ElicitParams
				session := frontend.connect(t, g.Server, version,
					person(func(ctx context.Context, asked *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						form = asked
						return test.person(ctx, asked)
					}).options())
				result := callWith(t, session, "erase", 1)
				allowed := test.want == "done"
				if got := textOf(t, result); !strings.Contains(got, test.want) || result.IsError == allowed ||
					(g.done.Load() == 1) != allowed {
					t.Errorf("error %v, %q, %d calls", result.IsError, got, g.done.Load())
				}
				if form == nil || !strings.Contains(form.Message, "\n  n: 1\n") ||
					!strings.Contains(form.Message, `it erases (rule "ask first")`) {
					t.Errorf("asked: %+v", form)
				}
				if waiting, err := g.approvals.Waiting(t.Context(), nil); err != nil || len(waiting) != 0 {
					t.Errorf("%d questions wait, %v", len(waiting), err)
				}
			})
		}
	})
}
