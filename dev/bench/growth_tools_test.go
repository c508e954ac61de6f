package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/mcpload"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// toolsPerSource is the number of tools of one source in a large catalog.
const toolsPerSource = 10

// growTools measures catalogs of many tools, ten to a source, behind a policy of 100 rules.
func (r *results) growTools(t *testing.T) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		c := new(catalog.Catalog)
		for i := range n / toolsPerSource {
			putTools(t, c, i)
		}
		calls := pipeline.New(c, &pipeline.Options{Governance: governance(t, 100)})
		server, err := mcpserver.New(c, calls, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := connect(t, serve(t, server.Handler())+"/mcp", protocolVersions[0])
		r.addPoint(t, "tools", n, "list_ms", ms(perRun(t, 10, func() error { list(t, client, n); return nil })), "ms")
		r.addPoint(t, "tools", n, "change_ms", ms(perRun(t, 10, func() error { putTools(t, c, 0); return nil })), "ms")
		call := nothingCall("aki")
		call.Request.Name = "source0_tool0"
		took := perRun(t, samples, func() error {
			_, err := calls.Call(t.Context(), call)
			return err
		})
		r.addPoint(t, "tools", n, "call_us", us(took), "us")
		_ = server.Close()
	}
}

// putTools offers the tools of one source anew.
func putTools(t *testing.T, c *catalog.Catalog, number int) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "name: source%d\nversion: 1.0.0\ndescription: Echoes.\ntools:\n", number)
	for i := range toolsPerSource {
		fmt.Fprintf(&text, "  - name: source%d_tool%d\n    description: Returns the text that it is given.\n"+
			"    inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}\n", number, i)
	}
	m, err := manifest.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Put(catalog.Source{Name: fmt.Sprintf("source%d", number), Backend: nothing{}}, m); err != nil {
		t.Fatal(err)
	}
}

// list lists all tools, page by page.
func list(t *testing.T, c *mcpload.Client, want int) {
	t.Helper()
	tools := 0
	for cursor := ""; ; {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q}}`, cursor)
		_, data, err := c.Post(t.Context(), "tools/list", "", body)
		if err != nil {
			t.Fatal(err)
		}
		_, message, _ := strings.Cut(string(data), "data: ")
		var answer struct {
			Result struct {
				Tools      []json.RawMessage `json:"tools"`
				NextCursor string            `json:"nextCursor"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(message), &answer); err != nil {
			t.Fatalf("%v: %.300s", err, data)
		}
		tools += len(answer.Result.Tools)
		if cursor = answer.Result.NextCursor; cursor == "" {
			break
		}
	}
	if tools != want {
		t.Fatalf("%d tools are listed instead of %d", tools, want)
	}
}
