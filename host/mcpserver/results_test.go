package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/host/results"
	"github.com/hako-run/hako/pdk/abi"
)

// keeping returns a server over a pipeline whose policy allows only list and listed, with large results.
func keeping(t *testing.T) *Server {
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
	k := results.New(nil)
	if err := k.Offer(c); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse([]byte("version: 1\ndefault: deny\nrules: [{name: lists, tools: [list, listed], action: allow}]"))
	if err != nil {
		t.Fatal(err)
	}
	calls := pipeline.New(c, &pipeline.Options{Results: k, Governance: pipeline.Governance{
		Policy: func() *policy.Policy { return rules }}})
	return newServer(t, c, calls, &Options{MaxResult: 8 << 10})
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
		!strings.Contains(err.Error(), "is kept for you") {
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
