package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

// withToolsets returns a server whose client is offered "seen" and "other" of four tools, and whose endpoint "one" has
// one of them.
func withToolsets(t *testing.T, options *Options) (*Server, *catalog.Catalog) {
	t.Helper()
	if options == nil {
		options = new(Options)
	}
	c, calls := callingToolsets(t, options)
	return newServer(t, c, calls, options), c
}

// callingToolsets returns the catalog and the pipeline of withToolsets, and puts the toolsets into the options.
func callingToolsets(t *testing.T, options *Options) (*catalog.Catalog, Pipeline) {
	t.Helper()
	m := &manifest.Manifest{Name: "test"}
	for _, name := range []string{"look", "move", "erase", "secret"} {
		m.Tools = append(m.Tools, manifest.Tool{Name: name, Description: manifest.Text{"en": "Does " + name + "."},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}`)})
	}
	c := offerAll(t, func(_ context.Context, r *abi.Request, _ func(abi.Progress)) (*abi.Response, error) {
		return text("%s %s", r.Name, r.Arguments), nil
	}, m)
	options.Toolsets = &toolset.Config{
		Sets: map[string]*toolset.Set{
			"two": {Name: "two", Tools: []toolset.Tool{{Pattern: "look", Rename: "seen"}, {Pattern: "move", Rename: "other"}}},
			"one": {Name: "one", Tools: []toolset.Tool{{Pattern: "erase",
				Fix: map[string]json.RawMessage{"n": json.RawMessage("1")}}}},
			"acme": {Name: "acme", For: &toolset.People{Tenants: []string{"acme"}}, Tools: []toolset.Tool{{Pattern: "*"}}},
		},
		Rules: []toolset.Rule{{Set: "two"}},
	}
	return c, pipeline.New(c, &pipeline.Options{Settings: pipeline.Settings{Toolsets: options.Toolsets}})
}

// TestToolsetAtAnyReplica: a session that was opened at a toolset's endpoint of one replica is offered the same set at
// the other, and is found at no other endpoint.
func TestToolsetAtAnyReplica(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFleetOf(t, 2, func(_ int, _ *store.Store, o *Options) (*catalog.Catalog, Pipeline) {
				return callingToolsets(t, o)
			})
			one := connect(t, overHTTP(f.url+"/one"), version, nil)
			t.Cleanup(func() { one.Close() })
			for range 4 { // the balancer takes turns
				if names := listed(t, one, 10); !slices.Equal(names, []string{"erase"}) {
					t.Errorf("listed: %v", names)
				}
				result, err := one.CallTool(t.Context(), &mcp.CallToolParams{Name: "erase", Arguments: map[string]any{}})
				if err != nil || textOf(t, result) != `erase {"n":1}` {
					t.Errorf("a call with a fixed argument: %v, %v", result, err)
				}
				f.next.Add(1)
			}
			if version != withSessions {
				return
			}
			for _, r := range f.replicas {
				for path, want := range map[string]int{"/one": http.StatusOK, "/two": http.StatusNotFound, "": http.StatusNotFound} {
					if got, data := r.sendTo(t, path, one.ID(), message(withSessions, 1, "tools/list", "{}")); got != want {
						t.Errorf("the session of /one at %q: %d %s", path, got, data)
					}
				}
			}
		})
	}
}

// sendTo sends one message of a session to an endpoint of the replica.
func (r *replica) sendTo(t *testing.T, path, session, body string) (status int, data string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+Path+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Mcp-Session-Id": session,
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": withSessions} {
		request.Header.Set(name, value)
	}
	response, err := web.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestToolsetLists: every client is listed what its toolset offers, page by page, and calls it by that name.
func TestToolsetLists(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s, _ := withToolsets(t, &Options{PageSize: 1})
		session := frontend.connect(t, s, version, nil)
		if names := listed(t, session, 1); !slices.Equal(names, []string{"other", "seen"}) {
			t.Errorf("listed: %v", names)
		}
		if result := callWith(t, session, "seen", 1); result.IsError {
			t.Errorf("a call: %s", textOf(t, result))
		}
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "look", Arguments: map[string]any{"n": 1}})
		if err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("a call by the name in the catalog: %v", err)
		}
		if _, err := session.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "?"}); err == nil {
			t.Error("a cursor of nothing is accepted")
		}
	})
}

// TestToolsetOfStdio: the client over stdio is offered the set for callers at this machine.
func TestToolsetOfStdio(t *testing.T) {
	t.Parallel()
	options := new(Options)
	c, calls := callingToolsets(t, options)
	options.Toolsets.Local = "one"
	session := connectStdio(t, newServer(t, c, calls, options), versions[0], nil)
	if names := listed(t, session, 10); !slices.Equal(names, []string{"erase"}) {
		t.Errorf("listed: %v", names)
	}
}

// TestToolsetEndpoints: each set has its endpoint, for those whom it is for, and a session belongs to the endpoint where
// it was opened.
func TestToolsetEndpoints(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		s, _ := withToolsets(t, nil)
		url := listen(t, s)
		at := func(path string) *mcp.ClientSession {
			session := connect(t, overHTTP(url+Path+path), version, nil)
			t.Cleanup(func() { session.Close() })
			return session
		}
		one, rest := at("/one"), at("")
		if names := listed(t, one, 10); !slices.Equal(names, []string{"erase"}) {
			t.Errorf("at /one: %v", names)
		}
		if names := listed(t, rest, 10); !slices.Equal(names, []string{"other", "seen"}) {
			t.Errorf("at /mcp: %v", names)
		}
		result, err := one.CallTool(t.Context(), &mcp.CallToolParams{Name: "erase", Arguments: map[string]any{}})
		if err != nil || textOf(t, result) != `erase {"n":1}` {
			t.Errorf("a call with a fixed argument: %v", err)
		}
		result, err = one.CallTool(t.Context(), &mcp.CallToolParams{Name: "erase", Arguments: map[string]any{"n": 2}})
		if err != nil || !result.IsError || !strings.Contains(textOf(t, result), `the caller may not set "n"`) {
			t.Errorf("a fixed argument that was given: %v", err)
		}
		status := func(path, session string) int {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+Path+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			response, err := web.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			return response.StatusCode
		}
		for path, want := range map[string]int{"/none": http.StatusNotFound, "/all": http.StatusNotFound, "/acme": http.StatusForbidden,
			"/one/x": http.StatusNotFound} {
			if got := status(path, ""); got != want {
				t.Errorf("%s: status %d, want %d", path, got, want)
			}
		}
		if version != withSessions {
			continue
		}
		for _, path := range []string{"", "/two"} {
			if got := status(path, one.ID()); got != http.StatusNotFound {
				t.Errorf("the session of /one at %q: status %d", path, got)
			}
		}
		if got := status("/one", one.ID()); got != http.StatusOK {
			t.Errorf("the session at its endpoint: status %d", got)
		}
	}
}

// TestToolsetsReload: clients are notified when the sets change, and are offered the new ones.
func TestToolsetsReload(t *testing.T) {
	t.Parallel()
	s, c := withToolsets(t, nil)
	changed := make(chan struct{}, 10)
	session := connectStdio(t, s, withSessions, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	if names := listed(t, session, 10); len(names) != 2 {
		t.Fatalf("listed: %v", names)
	}
	next := &toolset.Config{Sets: map[string]*toolset.Set{"two": {Tools: []toolset.Tool{{Pattern: "secret"}}}},
		Rules: []toolset.Rule{{Set: "two"}}}
	s.pipeline.(*pipeline.Pipeline).Set(pipeline.Settings{Toolsets: next})
	put, err := s.Reconfigure(&Options{Toolsets: next})
	if err != nil {
		t.Fatal(err)
	}
	put()
	<-changed
	if names := listed(t, session, 10); !slices.Equal(names, []string{"secret"}) || len(c.View().Tools) != 4 {
		t.Errorf("listed: %v", names)
	}
}

// TestFinder: of a large catalog clients are listed two tools. A call through them asks the person at the client about
// the tool that is called.
func TestFinder(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		sets := &toolset.Config{Search: toolset.Search{Tools: 1}}
		g := newGoverned(t, askingPolicy, nil, &Options{Toolsets: sets})
		g.pipeline.(*pipeline.Pipeline).Set(pipeline.Settings{Toolsets: sets})
		var form *mcp.ElicitParams
		session := frontend.connect(t, g.Server, version,
			person(func(_ context.Context, asked *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				form = asked
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
			}).options())
		if names := listed(t, session, 10); !slices.Equal(names, []string{"call_tool", "find_tools"}) {
			t.Errorf("listed: %v", names)
		}
		call := func(name string, arguments map[string]any) string {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			return textOf(t, result)
		}
		if found := call("find_tools", map[string]any{"query": "erase"}); !strings.Contains(found, "tools.erase(") {
			t.Errorf("found: %s", found)
		}
		if got := call("call_tool", map[string]any{"name": "erase", "arguments": map[string]any{"n": 1}}); got != "done" ||
			form == nil || !strings.Contains(form.Message, "erase") || g.done.Load() != 1 {
			t.Errorf("%q, asked %+v, %d calls", got, form, g.done.Load())
		}
		if got := call("look", map[string]any{"n": 1}); got != "done" {
			t.Errorf("a call by the tool's own name: %q", got)
		}
	})
}
