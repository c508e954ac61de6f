package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

// keeping returns a server over a pipeline whose policy allows only list and listed, with large results.
func keeping(t *testing.T) *Server {
	t.Helper()
	c, calls := keepingIn(t, results.New(nil), nil)
	return newServer(t, c, calls, &Options{MaxResult: 8 << 10})
}

// keepingIn returns the catalog and the pipeline of keeping with this keeper and these toolsets.
func keepingIn(t *testing.T, k *results.Keeper, sets *toolset.Config) (*catalog.Catalog, Pipeline) {
	t.Helper()
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"山田 太郎"}`, i))
	}
	body := `{"rows":[` + strings.Join(rows, ",") + `]}`
	m := &manifest.Manifest{Name: "test", Tools: []manifest.Tool{tool("list"), tool("listed"), tool("secret")}}
	m.Tools[1].OutputSchema = json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array"}},"required":["rows"]}`)
	c := offerAll(t, func(context.Context, *abi.Request, func(abi.Progress)) (*abi.Response, error) {
		return &abi.Response{StructuredContent: json.RawMessage(body)}, nil
	}, m)
	if err := k.Offer(c); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse([]byte("version: 1\ndefault: deny\nrules: [{name: lists, tools: [list, listed], action: allow}]"))
	if err != nil {
		t.Fatal(err)
	}
	return c, pipeline.New(c, &pipeline.Options{Results: k, Settings: pipeline.Settings{Toolsets: sets},
		Governance: pipeline.Governance{Policy: func() *policy.Policy { return rules }}})
}

// TestKeptAtAnyReplica: what is kept at one replica is read at the others, by the same user alone.
func TestKeptAtAnyReplica(t *testing.T) {
	t.Parallel()
	aki, akiHash := bearer.New()
	bo, boHash := bearer.New()
	opened := newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "a", Hash: akiHash, User: "aki"},
		{Name: "b", Hash: boHash, User: "bo"}}})
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFleetOf(t, 2, func(_ int, s *store.Store, o *Options) (*catalog.Catalog, Pipeline) {
				k, err := results.Open(t.Context(), nil, s, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				o.Auth, o.MaxResult = opened, 8<<10
				return keepingIn(t, k, nil)
			})
			at := func(url, token string) *mcp.ClientSession {
				transport := overHTTP(url)
				transport.HTTPClient.Transport = carrying(token)
				session := connect(t, transport, version, nil)
				t.Cleanup(func() { session.Close() })
				return session
			}
			balanced, stranger := at(f.url, aki), at(f.url, bo)
			link := callWith(t, balanced, "list", 1).Content[1].(*mcp.ResourceLink)
			readers := []*mcp.ClientSession{balanced, balanced, at(f.replicas[0].url+Path, aki), at(f.replicas[1].url+Path, aki)}
			for i, session := range readers {
				whole, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
				if err != nil || int64(len(whole.Contents[0].Text)) != *link.Size {
					t.Errorf("reader %d: the resource: %v", i, err)
				}
				part, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: results.Tool,
					Arguments: map[string]any{"id": link.URI, "pointer": "/rows/999/id"}})
				if err != nil || part.IsError || textOf(t, part) != "999" {
					t.Errorf("reader %d: read_result: %+v, %v", i, part, err)
				}
			}
			for range 2 {
				_, err := stranger.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
				if err == nil || !strings.Contains(err.Error(), "you have no stored result") {
					t.Errorf("another user reads the resource: %v", err)
				}
				part, err := stranger.CallTool(t.Context(), &mcp.CallToolParams{Name: results.Tool,
					Arguments: map[string]any{"id": link.URI}})
				if err != nil || !part.IsError || !strings.Contains(textOf(t, part), "you have no stored result") {
					t.Errorf("another user reads the result: %+v, %v", part, err)
				}
			}
		})
	}
}

// TestKeptForSessionElsewhere: without a user, the session reads what it was given, wherever the session is served, and
// no other session does.
func TestKeptForSessionElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, 2, func(_ int, s *store.Store, o *Options) (*catalog.Catalog, Pipeline) {
		k, err := results.Open(t.Context(), nil, s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		o.MaxResult = 8 << 10
		return keepingIn(t, k, nil)
	})
	a, b := f.replicas[0], f.replicas[1]
	mine, other := a.initialize(t, "{}"), a.initialize(t, "{}")
	_, data := a.send(t, mine, message(withSessions, 1, "tools/call", `{"name":"list","arguments":{"n":1}}`))
	_, after, _ := strings.Cut(data, "hako-result:///")
	id, _, _ := strings.Cut(after, `"`)
	read := message(withSessions, 2, "tools/call", `{"name":"read_result","arguments":{"id":"`+id+`","pointer":"/rows/999"}}`)
	if _, data := b.send(t, mine, read); !strings.Contains(data, `{\"id\":999,`) {
		t.Errorf("the session reads %.300s", data)
	}
	if _, data := b.send(t, other, read); !strings.Contains(data, "you have no stored result") {
		t.Errorf("another session reads %.300s", data)
	}
}

// TestKeptWithoutTool: a client whose toolset leaves read_result out is told of the resource alone. One whose toolset
// renames it is told the new name.
func TestKeptWithoutTool(t *testing.T) {
	t.Parallel()
	lists := toolset.Tool{Pattern: "list"}
	sets := &toolset.Config{Sets: map[string]*toolset.Set{
		"without": {Name: "without", Tools: []toolset.Tool{lists}, Except: []string{results.Tool}},
		"renamed": {Name: "renamed", Tools: []toolset.Tool{lists, {Pattern: results.Tool, Rename: "read_more"}}},
	}}
	for _, version := range versions {
		c, calls := keepingIn(t, results.New(nil), sets)
		url := listen(t, newServer(t, c, calls, &Options{MaxResult: 8 << 10, Toolsets: sets}))
		for set, want := range map[string]struct{ tools, says string }{
			"without": {"list", ": the resource hako-result:///"}, "renamed": {"list read_more", `: read_more with {"id": "`},
		} {
			session := connect(t, overHTTP(url+Path+"/"+set), version, nil)
			t.Cleanup(func() { session.Close() })
			if names := strings.Join(listed(t, session, 10), " "); names != want.tools {
				t.Errorf("%s: listed: %v", set, names)
			}
			result := callWith(t, session, "list", 1)
			link := result.Content[1].(*mcp.ResourceLink)
			note, _, _ := strings.Cut(result.Content[0].(*mcp.TextContent).Text, "\n")
			if !strings.Contains(note, want.says) || strings.Contains(note+link.Description, results.Tool) {
				t.Errorf("%s: %s %s", set, note, link.Description)
			}
			whole, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
			if err != nil || int64(len(whole.Contents[0].Text)) != *link.Size {
				t.Errorf("%s: the resource: %v", set, err)
			}
			if set == "renamed" {
				part, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_more",
					Arguments: map[string]any{"id": link.URI, "pointer": "/rows/999/id"}})
				if err != nil || part.IsError || textOf(t, part) != "999" {
					t.Errorf("read_more: %+v, %v", part, err)
				}
			}
		}
	}
}

// TestKeptResults: a large result is its beginning and a link, which the caller reads in parts and whole, whatever the
// policy's default is.
func TestKeptResults(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		session := frontend.connect(t, keeping(t), version, nil)
		if names := listed(t, session, 10); strings.Join(names, " ") != "list listed read_result" {
			t.Errorf("listed: %v", names)
		}
		for _, name := range []string{"list", "listed"} {
			result := callWith(t, session, name, 1)
			if len(result.Content) != 2 || result.StructuredContent != nil || result.IsError != (name == "listed") {
				t.Fatalf("%s: %+v", name, result)
			}
			_, start, _ := strings.Cut(result.Content[0].(*mcp.TextContent).Text, "\n")
			link := result.Content[1].(*mcp.ResourceLink)
			if !strings.HasPrefix(start, `{"rows":[{"id":0,`) || !json.Valid([]byte(start)) || len(start) > 2<<10 ||
				link.MIMEType != "application/json" {
				t.Errorf("%s: %+v: %s", name, link, start)
			}
			whole, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
			if err != nil || int64(len(whole.Contents[0].Text)) != *link.Size || !json.Valid([]byte(whole.Contents[0].Text)) {
				t.Fatalf("%s: the resource: %v", name, err)
			}
			part, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: results.Tool,
				Arguments: map[string]any{"id": link.URI, "pointer": "/rows", "offset": 998}})
			if err != nil || part.IsError || part.Content[0].(*mcp.TextContent).Text !=
				`[{"id":998,"name":"山田 太郎"},{"id":999,"name":"山田 太郎"}]` {
				t.Errorf("%s: the last items: %+v, %v", name, part, err)
			}
		}
		templates, err := session.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "hako-result:///{id}" {
			t.Errorf("templates: %+v, %v", templates, err)
		}
		if list, err := session.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 0 {
			t.Errorf("resources: %+v, %v", list, err)
		}
	})
}

// TestKeptForSession: sessions without a user do not read each other's results.
func TestKeptForSession(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	mine, other := connectHTTP(t, s, withSessions, nil), connectHTTP(t, s, withSessions, nil)
	link := callWith(t, mine, "list", 1).Content[1].(*mcp.ResourceLink)
	if _, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI}); err == nil ||
		!strings.Contains(err.Error(), "you have no stored result") {
		t.Errorf("another session reads the resource: %v", err)
	}
	result, err := other.CallTool(t.Context(), &mcp.CallToolParams{Name: results.Tool, Arguments: map[string]any{"id": link.URI}})
	if err != nil || !result.IsError {
		t.Errorf("another session reads the result: %+v, %v", result, err)
	}
	if _, err := mine.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI}); err != nil {
		t.Error(err)
	}
}

// TestLinkBefore2025: clients of versions without links get them as text.
func TestLinkBefore2025(t *testing.T) {
	t.Parallel()
	response := &abi.Response{Content: []abi.Content{{Type: abi.ResourceLink, URI: "hako-result:///a", Name: "n", Description: "d"}}}
	fit(response, "2025-03-26")
	if block := response.Content[0]; block.Type != abi.Text || block.Text != "(link to n: hako-result:///a d)" {
		t.Errorf("%+v", block)
	}
	response.Content[0] = abi.Content{Type: abi.ResourceLink, URI: "hako-result:///a", Name: "n"}
	if fit(response, "2025-06-18"); response.Content[0].Type != abi.ResourceLink {
		t.Errorf("%+v", response.Content[0])
	}
}
