//go:build !wasip1

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// plugin is the plugin as it ships.
var plugin = sync.OnceValues(func() ([]byte, error) {
	wasm, err := gobuild.Plugin(context.Background(), ".")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(manifestPath)
	if err != nil {
		return nil, err
	}
	return wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: text})
})

// serving returns a host with the plugin and an empty database. Compiled code is shared by all runs of the tests.
func serving(t testing.TB) *host.Host {
	t.Helper()
	wasm, err := plugin()
	must(t, err)
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	h, err := host.New(&host.Options{
		Shipped:  []host.Shipped{{File: "tasks.wasm", Wasm: func() ([]byte, error) { return wasm, nil }}},
		CacheDir: filepath.Join(base, "hako-test", "tasks"),
		DataDir:  t.TempDir(),
		Limits:   manifest.Limits{Rate: 1_000_000, Time: 10 * time.Minute}, // in the interpreter, under the race detector, on a busy machine
	})
	must(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	must(t, h.Load(t.Context()))
	for _, p := range h.Plugins() {
		if p.State != host.Active {
			t.Fatalf("plugin %s is %s: %s", p.Name, p.State, p.Reason)
		}
	}
	return h
}

// board is an MCP server with the plugin.
type board struct {
	t        *testing.T
	endpoint string
	http     *http.Client
}

func newBoard(t *testing.T) *board {
	t.Helper()
	h := serving(t)
	s, err := mcpserver.New(h.Catalog(), h, nil)
	must(t, err)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return &board{t, server.URL + mcpserver.Path, server.Client()}
}

// client is one agent's MCP client.
type client struct {
	*mcp.ClientSession
	t *testing.T
}

func (b *board) connect(version string, options *mcp.ClientOptions) *client {
	b.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(b.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: b.endpoint, HTTPClient: b.http},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	must(b.t, err)
	b.t.Cleanup(func() { session.Close() })
	return &client{session, b.t}
}

func (c *client) call(tool string, in args) (json.RawMessage, error) {
	result, err := c.CallTool(context.WithoutCancel(c.t.Context()), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if result.IsError {
		return nil, errors.New(result.Content[0].(*mcp.TextContent).Text)
	}
	return json.Marshal(result.StructuredContent)
}

// prepare fills the board as whoever plans the work does.
func (c *client) prepare() {
	c.t.Helper()
	for _, step := range []struct {
		tool string
		in   args
	}{
		{"register_agent", args{"agent_id": "agt_ann", "name": "frontend-dev"}},
		{"register_agent", args{"agent_id": "agt_bob", "name": "tester"}},
		{"create_project", args{"project_id": "proj_login", "name": "Login"}},
		{"create_task", args{"project_id": "proj_login", "task_id": "task_ui", "title": "ログイン画面",
			"assignee_id": "agt_ann", "status": inProgress}},
	} {
		if _, err := c.call(step.tool, step.in); err != nil {
			c.t.Fatalf("%s: %v", step.tool, err)
		}
	}
}

// versions are the versions of MCP with sessions and without.
var versions = []string{"2025-11-25", "2026-07-28"}

// TestWorkflows lets two agents work on a task: one hands it over, the other finishes it. They know what their prompts
// say.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t)
			ann, bob := b.connect(version, nil), b.connect(version, nil)
			ann.prepare()
			kicked, err := ann.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "task_start",
				Arguments: map[string]string{"task_id": "task_ui", "agent_id": "agt_ann"}})
			must(t, err)
			ids := idsOf(kicked.Messages[0].Content.(*mcp.TextContent).Text)
			ask[savedContext](t, ann.call, "save_context", args{"task_id": ids["Task"], "progress": "認証機能実装完了"})
			ask[createdHandoff](t, ann.call, "create_handoff",
				args{"task_id": ids["Task"], "from_agent_id": ids["Agent"], "to_agent_id": "agt_bob",
					"summary": "認証機能実装完了。UIテストが必要"})

			waiting := ask[handoffPage](t, bob.call, "get_pending_handoffs", args{"agent_id": "agt_bob"}).Handoffs
			if len(waiting) != 1 || waiting[0].TaskID != "task_ui" {
				t.Fatalf("agt_bob finds %+v", waiting)
			}
			got := ask[acceptance](t, bob.call, "accept_handoff",
				args{"handoff_id": waiting[0].ID, "agent_id": "agt_bob"})
			if got.Task.AssigneeID != "agt_bob" {
				t.Errorf("the task is %+v", got.Task)
			}
			if known := ask[taskContext](t, bob.call, "get_task_context", args{"task_id": "task_ui"}).Context; known.Progress == nil || *known.Progress != "認証機能実装完了" {
				t.Errorf("agt_bob knows %+v", known)
			}
			if finished := ask[statusChange](t, bob.call, "update_task_status", args{"task_id": "task_ui", "status": done}); finished.Task.Status != done {
				t.Errorf("finished: %+v", finished)
			}
			if p := ask[projectDetail](t, ann.call, "get_project", args{"project_id": ids["Project"]}); p.OpenTasks != 0 || p.TaskCounts[done] != 1 {
				t.Errorf("the project is %+v", p)
			}
		})
	}
}

var idLine = regexp.MustCompile(`(?m)^- (Task|Project|Agent) ID: (\S+)`)

// idsOf reads the ids in a prompt as a model does.
func idsOf(prompt string) map[string]string {
	ids := map[string]string{}
	for _, match := range idLine.FindAllStringSubmatch(prompt, -1) {
		ids[match[1]] = match[2]
	}
	return ids
}

// TestCrowdThroughTheFrontend lets eight clients work on one task at once, each call in a sandbox.
func TestCrowdThroughTheFrontend(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	var callers []caller
	for i := range crowdSize {
		c := b.connect(versions[i%len(versions)], nil)
		if i == 0 {
			c.prepare()
		}
		callers = append(callers, c.call)
	}
	crowd(t, callers)
}

// TestOffer holds what a client is shown, and that what is retired is not shown but explained.
func TestOffer(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	c := b.connect(versions[0], nil)
	c.prepare()
	tools, err := c.ListTools(t.Context(), nil)
	must(t, err)
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	must(t, err)
	prompts, err := c.ListPrompts(t.Context(), nil)
	must(t, err)
	if len(tools.Tools) != 19+3 || len(templates.ResourceTemplates) != 5 || len(prompts.Prompts) != 3 {
		t.Errorf("%d tools, %d templates, %d prompts", len(tools.Tools), len(templates.ResourceTemplates),
			len(prompts.Prompts))
	}
	for name, instead := range map[string]string{
		"get_my_profile": "get_agent_profile(agent_id)", "get_my_tasks": "list_tasks(assignee_id)",
		"start_session": "save_context",
		"end_session":   "update_task_status", "get_my_sessions": "get_task_context",
	} {
		if slices.ContainsFunc(tools.Tools, func(x *mcp.Tool) bool { return x.Name == name }) {
			t.Errorf("%s is listed", name)
		}
		if _, err := c.call(name, args{}); err == nil || !strings.Contains(err.Error(), instead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for uri, instead := range map[string]string{"agent://me": "agent://{id}", "session://current": "task://{id}"} {
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil ||
			!strings.Contains(err.Error(), instead) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for name, instead := range map[string]string{"session_start": "task_start", "session_end": "handoff_template"} {
		if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name}); err == nil ||
			!strings.Contains(err.Error(), instead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	completed, err := c.Complete(t.Context(),
		&mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "task://{id}"},
			Argument: mcp.CompleteParamsArgument{Name: "id", Value: "task_"}})
	if err != nil || !slices.Equal(completed.Completion.Values, []string{"task_ui"}) {
		t.Errorf("completion: %+v, %v", completed, err)
	}
}

// TestSubscriber checks that a client which has subscribed to a task hears of what another does to it.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	ann := b.connect(versions[0], nil)
	ann.prepare()
	heard := make(chan string, 100)
	watcher := b.connect(versions[0], &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context,
		r *mcp.ResourceUpdatedNotificationRequest) {
		heard <- r.Params.URI
	}})
	must(t, watcher.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "task://task_ui"}))
	for i := range 1000 { // the stream may not stand yet, and what is missed is missed
		ask[statusChange](t, ann.call, "update_task_status",
			args{"task_id": "task_ui", "status": []string{review, inProgress}[i%2]})
		select {
		case uri := <-heard:
			if uri != "task://task_ui" {
				t.Errorf("told of %s", uri)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("told of nothing")
}

// TestTenants checks that a tenant has a board of its own, in everything that names records.
func TestTenants(t *testing.T) {
	t.Parallel()
	h := serving(t)
	as := func(tenant string, request abi.Request) (*abi.Response, error) {
		result, err := h.Call(t.Context(),
			&pipeline.Call{Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: tenant},
				Request: request})
		if err != nil {
			return nil, err
		}
		return result.Response, nil
	}
	created, err := as("acme", abi.Request{Method: abi.CallTool, Name: "register_agent",
		Arguments: json.RawMessage(`{"name":"n","agent_id":"agt_secret"}`)})
	if err != nil || created.IsError {
		t.Fatal(created, err)
	}
	for _, tenant := range []string{"acme", "zeta", ""} {
		profile, err := as(tenant, abi.Request{Method: abi.CallTool, Name: "get_agent_profile",
			Arguments: json.RawMessage(`{"agent_id":"agt_secret"}`)})
		must(t, err)
		_, readErr := as(tenant, abi.Request{Method: abi.ReadResource, URI: "agent://agt_secret"})
		completed, err := as(tenant, abi.Request{Method: abi.Complete,
			Ref: &abi.Ref{Type: "ref/resource", URI: "agent://{id}"}, Argument: &abi.Argument{Name: "id"}})
		must(t, err)
		own := tenant == "acme"
		if profile.IsError == own || (readErr == nil) != own || len(completed.Completion.Values) > 0 != own {
			t.Errorf("%q: profile %+v, resource %v, completion %+v", tenant, profile, readErr, completed.Completion)
		}
	}
}

// BenchmarkAgents measures calls of eight agents at once, through the pipeline and into the sandbox, each agent on a
// task of its own. The first run after a change answers from the interpreter until the plugin is compiled: take the
// second.
func BenchmarkAgents(b *testing.B) {
	h := serving(b)
	call := func(tool string, in args) {
		data, err := json.Marshal(in)
		if err != nil {
			b.Error(err)
			return
		}
		result, err := h.Call(b.Context(), &pipeline.Call{Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal},
			Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: data}})
		if err != nil || result.Response.IsError {
			b.Errorf("%s: %+v, %v", tool, result, err)
		}
	}
	call("create_project", args{"project_id": "proj_p", "name": "n"})
	for i := range crowdSize {
		call("create_task", args{"project_id": "proj_p", "task_id": fmt.Sprintf("task_%d", i), "title": "t",
			"status": inProgress})
	}
	for _, kind := range []struct {
		name string
		call func(id string, n int)
	}{
		{"read", func(id string, _ int) { call("get_task", args{"task_id": id}) }},
		{"write", func(id string, n int) {
			call("update_task_status", args{"task_id": id, "status": []string{inProgress, review}[n%2]})
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			var group sync.WaitGroup
			for i := range crowdSize {
				group.Go(func() {
					for n := range b.N / crowdSize {
						kind.call(fmt.Sprintf("task_%d", i), n)
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N/crowdSize*crowdSize)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
