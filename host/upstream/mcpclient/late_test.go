package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// changing is a server over HTTP whose tools change. Requests wait while gate is locked.
type changing struct {
	*mcp.Server
	url  string
	gate sync.Mutex
}

// newChanging returns a server with the tools "keep" and "old".
func newChanging(t *testing.T) *changing {
	t.Helper()
	c := &changing{Server: mcp.NewServer(&mcp.Implementation{Name: "changing", Version: "1"}, nil)}
	c.add("keep")
	c.add("old")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.Server }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.wait()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	c.url = server.URL
	return c
}

func (c *changing) wait() {
	c.gate.Lock()
	defer c.gate.Unlock()
}

func (c *changing) add(name string) {
	c.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
}

// connect connects a client to a frontend that offers the rig's catalog. changed receives each list_changed.
func (r *rig) connect(version string) (session *mcp.ClientSession, changed chan struct{}) {
	r.t.Helper()
	s, err := mcpserver.New(r.catalog, r.pipeline, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	r.t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	changed = make(chan struct{}, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	transport := &mcp.StreamableClientTransport{Endpoint: server.URL + mcpserver.Path,
		HTTPClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	session, err = client.Connect(context.WithoutCancel(r.t.Context()), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { session.Close() })
	return session, changed
}

// TestLateListChanged: a server is connected after its tools were offered from the cache, and then changes its tools.
// The catalog, a connected client and the file of the cache follow. A tool that the server has removed is gone.
func TestLateListChanged(t *testing.T) {
	t.Parallel()
	for _, start := range []mcpclient.Start{mcpclient.Eager, mcpclient.Lazy} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(fmt.Sprint(start, " ", version), func(t *testing.T) {
				t.Parallel()
				c, dirs := newChanging(t), newFolders(t)
				spec := mcpclient.Spec{Name: "c", URL: c.url, Start: start, ProtocolVersion: version}
				dirs.fill(t, spec)

				c.gate.Lock()
				r, stop := dirs.run(t, spec)
				session, changed := r.connect(version)
				offered := func() (names []string) {
					t.Helper()
					list, err := session.ListTools(testwait.Context(t), nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, tool := range list.Tools {
						names = append(names, tool.Name)
					}
					return names
				}
				before, after := []string{"c_keep", "c_old"}, []string{"c_keep", "c_new"}
				if got := offered(); !slices.Equal(got, before) || !r.status("c").Cached {
					t.Errorf("from the cache: tools are %v, status is %+v", got, r.status("c"))
				}
				c.gate.Unlock()
				if got := text(r.call("c_old", "{}")); got != "old" { // connects a lazy server
					t.Fatalf("got %q", got)
				}
				c.RemoveTools("old")
				c.add("new")
				for !slices.Equal(offered(), after) {
					select {
					case <-changed:
					case <-testwait.Context(t).Done():
						t.Fatalf("the client was not notified: tools are %v, status is %+v", offered(), r.status("c"))
					}
				}
				if got := r.tools(); !slices.Equal(got, after) {
					t.Errorf("tools of the catalog are %v", got)
				}
				if got := text(r.call("c_new", "{}")); got != "new" {
					t.Errorf("got %q", got)
				}
				if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "c_old"}); err == nil ||
					!strings.Contains(err.Error(), "c_old") {
					t.Errorf("the call of a tool that is gone: %v", err)
				}
				r.eventually("the file of the cache to be written", func() bool {
					data, err := os.ReadFile(filepath.Join(dirs.cache, "c.json"))
					return err == nil && strings.Contains(string(data), `"name":"new"`) &&
						!strings.Contains(string(data), `"name":"old"`)
				})
				stop()

				c.gate.Lock()
				t.Cleanup(c.gate.Unlock)
				r, _ = dirs.run(t, spec)
				if got := r.tools(); !slices.Equal(got, after) || !r.status("c").Cached {
					t.Errorf("the next start: tools are %v, status is %+v", got, r.status("c"))
				}
			})
		}
	}
}
