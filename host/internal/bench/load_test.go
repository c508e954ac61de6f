package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// protocolVersion is one protocol version of MCP over HTTP.
type protocolVersion struct {
	name, version string
	// session reports whether a client initializes first and sends its session ID.
	session bool
}

var protocolVersions = []protocolVersion{{"2025", "2025-11-25", true}, {"2026", "2026-07-28", false}}

// client sends prepared requests over one keep-alive connection, to measure mostly the server.
type client struct {
	http            *http.Client
	url             string
	protocolVersion protocolVersion
	session         string
}

func connect(t *testing.T, url string, protocolVersion protocolVersion) *client {
	t.Helper()
	c := &client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		url:  url, protocolVersion: protocolVersion,
	}
	if protocolVersion.session {
		response, _, err := c.post(t.Context(), "initialize", "",
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
				`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, protocolVersion.version))
		if err != nil {
			t.Fatal(err)
		}
		c.session = response.Header.Get("Mcp-Session-Id")
		if _, _, err := c.post(t.Context(), "notifications/initialized", "",
			[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// body is a tools/call request.
func (c *client) body(tool, arguments string) []byte {
	meta := ""
	if !c.protocolVersion.session {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}},`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`,
		meta, tool, arguments)
}

func (c *client) post(ctx context.Context, method, tool string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" || !c.protocolVersion.session {
		request.Header.Set("Mcp-Protocol-Version", c.protocolVersion.version)
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	if !c.protocolVersion.session {
		request.Header.Set("Mcp-Method", method)
		request.Header.Set("Mcp-Name", tool)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	return response, data, err
}

// call calls a tool and checks that the response contains want.
func (c *client) call(ctx context.Context, tool string, body []byte, want string) error {
	_, data, err := c.post(ctx, "tools/call", tool, body)
	if err == nil && !strings.Contains(string(data), want) {
		err = fmt.Errorf("the answer is %.300s", data)
	}
	return err
}

// rate is the result of load.
type rate struct {
	calls     int
	perSecond float64
	p50, p99  time.Duration
}

// load calls a tool from n clients for the given time.
func load(t *testing.T, url string, protocolVersion protocolVersion, n int, tool, arguments, want string,
	duration time.Duration) rate {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = connect(t, url, protocolVersion)
	}
	begin := time.Now()
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			body := c.body(tool, arguments)
			var own []time.Duration
			for time.Since(begin) < duration {
				start := time.Now()
				if err := c.call(t.Context(), tool, body, want); err != nil {
					t.Errorf("%s, protocolVersion %s, %d clients: %v", tool, protocolVersion.name, n, err)
					return
				}
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	for _, c := range clients {
		c.http.CloseIdleConnections()
	}
	if len(all) == 0 {
		t.Fatal("no call came back")
	}
	slices.Sort(all)
	return rate{len(all), float64(len(all)) / elapsed.Seconds(), all[len(all)/2], all[len(all)*99/100]}
}
