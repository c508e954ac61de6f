package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestURIs: clients find user interfaces by their scheme, and every URI leads back to the server alone.
func TestURIs(t *testing.T) {
	t.Parallel()
	s, other := &Spec{Name: "My_App", URL: "x"}, &Spec{Name: "My_App-2", URL: "x"}
	for own, want := range map[string]string{
		"ui://chart/view": "ui://my-app+chart/view", "ui://": "ui://my-app+", "file:///a": "my-app+file:///a",
		"ui:chart": "my-app+ui:chart", "UI://chart": "my-app+UI://chart", "ui://my-app+x": "ui://my-app+my-app+x",
	} {
		got := s.outside(own)
		back, ok := s.inside(got)
		if got != want || back != own || !ok || !s.OwnsResource(got) || other.OwnsResource(got) {
			t.Errorf("%s: %s and back %s, %v; want %s", own, got, back, ok, want)
		}
	}
	for _, foreign := range []string{"ui://chart/view", "ui://my-app-2+x", "file:///a", ""} {
		if s.OwnsResource(foreign) {
			t.Errorf("%q is the server's", foreign)
		}
	}
}

// TestMetadata: metadata passes, except what is about the connection or hako's own.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := &Spec{Name: "u", URL: "x"}
	for text, want := range map[string]string{
		`{}`: ``,
		`{"ui": {"resourceUri": "ui://chart/view", "visibility": ["app"]}, "ui/resourceUri": "ui://chart/view"}`: `{"ui":{"resourceUri":"ui://u+chart/view","visibility":["app"]},"ui/resourceUri":"ui://u+chart/view"}`,
		`{"openai/outputTemplate": "ui://w.html", "a": ["ui://x", "see ui://x", null, 1.5, true]}`:               `{"a":["ui://u+x","see ui://x",null,1.5,true],"openai/outputTemplate":"ui://u+w.html"}`,
		`{"com.example/mcp": 1, "mcpx.dev/a": 2, "x.run.hako/a": 3}`:                                             `{"com.example/mcp":1,"mcpx.dev/a":2,"x.run.hako/a":3}`,
		`{"io.modelcontextprotocol/serverInfo": 1, "modelcontextprotocol.io/a": 1, "mcp.dev/a": 1, "tools.mcp.com/a": 1, "run.hako/replayed": true,` +
			`"progressToken": 1, "traceparent": "x", "tracestate": "x", "baggage": "x"}`: ``,
		`{"a\u200b": "hid\u202eden"}`: `{"a":"hidden"}`,
	} {
		var meta mcp.Meta
		if err := json.Unmarshal([]byte(text), &meta); err != nil {
			t.Fatal(err)
		}
		if got, err := s.metadata(meta); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := s.metadata(mcp.Meta{"a": 1, "a\u200b": 2}); err == nil {
		t.Error("two keys look the same")
	}
}

// TestMetadataOfEntries: tools, resources, results, blocks and contents keep theirs, within bounds.
func TestMetadataOfEntries(t *testing.T) {
	t.Parallel()
	s := &Spec{Name: "u", URL: "x"}
	view := mcp.Meta{"ui": map[string]any{"resourceUri": "ui://v"}}
	const want = `{"ui":{"resourceUri":"ui://u+v"}}`
	o := newOffer(s, &listing{
		tools: []*mcp.Tool{{Name: "chart", Meta: view},
			{Name: "large", Meta: mcp.Meta{"a": strings.Repeat("x", maxMeta)}}},
		resources: []*mcp.Resource{{URI: "ui://v", Name: "v", Meta: view}},
		templates: []*mcp.ResourceTemplate{{URITemplate: "ui://v/{a}", Name: "v", Meta: view}},
	}, nil)
	m := o.manifest
	if len(m.Tools) != 2 || string(m.Tools[0].Meta) != want || m.Tools[1].Meta != nil || len(o.omitted) != 1 ||
		!strings.HasPrefix(o.omitted[0], `_meta of tool "large"`) {
		t.Errorf("tools %+v, left out %q", m.Tools, o.omitted)
	}
	if r := m.Resources; len(r) != 1 || r[0].URI != "ui://u+v" || string(r[0].Meta) != want {
		t.Errorf("resources %+v", r)
	}
	if r := m.ResourceTemplates; len(r) != 1 || r[0].URITemplate != "ui://u+v/{a}" || string(r[0].Meta) != want {
		t.Errorf("templates %+v", r)
	}
	embedded := &mcp.ResourceContents{URI: "ui://v", Text: "x", Meta: view}
	result, err := translator{s}.tool(&mcp.CallToolResult{Meta: view, Content: []mcp.Content{
		&mcp.TextContent{Text: "x", Meta: view}, &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png", Meta: view},
		&mcp.ResourceLink{URI: "ui://v", Name: "v", Meta: view}, &mcp.EmbeddedResource{Resource: embedded, Meta: view},
	}})
	if err != nil || string(result.Meta) != want || result.Content[2].URI != "ui://u+v" ||
		string(result.Content[3].Resource.Meta) != want {
		t.Fatalf("%+v, %v", result, err)
	}
	for i := range result.Content {
		if string(result.Content[i].Meta) != want {
			t.Errorf("content[%d]: %s", i, result.Content[i].Meta)
		}
	}
	bare := *result
	if bare.Meta = nil; size(result) != size(&bare)+len(want) {
		t.Error("metadata is not counted")
	}
	read, err := translator{s}.resource(&mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{embedded}})
	if err != nil || string(read.Contents[0].Meta) != want || read.Contents[0].URI != "ui://u+v" {
		t.Errorf("%+v, %v", read, err)
	}
}
