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

// era is one way of speaking MCP over HTTP.
type era struct {
	name, version string
	// session says that a client initializes first and names its session.
	session bool
}

var eras = []era{{"2025", "2025-11-25", true}, {"2026", "2026-07-28", false}}

// client sends prepared requests over one kept connection, so that the server is what is measured.
type client struct {
	http    *http.Client
	url     string
	era     era
	session string
}

func connect(t *testing.T, url string, era era) *client {
	t.Helper()
	c := &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}, url: url, era: era}
	if era.session {
		response, _, err := c.post(t.Context(), "initialize", "", []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		c.session = response.Header.Get("Mcp-Session-Id")
		if _, _, err := c.post(t.Context(), "notifications/initialized", "", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// body is a tools/call request.
func (c *client) body(tool, arguments string) []byte {
	meta := ""
	if !c.era.session {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}},`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`, meta, tool, arguments)
}

func (c *client) post(ctx context.Context, method, tool string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" || !c.era.session {
		request.Header.Set("Mcp-Protocol-Version", c.era.version)
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	if !c.era.session {
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

// call calls a tool and checks that the answer holds want.
func (c *client) call(ctx context.Context, tool string, body []byte, want string) error {
	_, data, err := c.post(ctx, "tools/call", tool, body)
	if err == nil && !strings.Contains(string(data), want) {
		err = fmt.Errorf("the answer is %.300s", data)
	}
	return err
}

// rate is what a load gave.
type rate struct {
	perSecond float64
	p50, p99  time.Duration
}

// load calls a tool from n clients for the given time.
func load(t *testing.T, url string, era era, n int, tool, arguments, want string, duration time.Duration) rate {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = connect(t, url, era)
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
					t.Errorf("%s, era %s, %d clients: %v", tool, era.name, n, err)
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
	return rate{float64(len(all)) / elapsed.Seconds(), all[len(all)/2], all[len(all)*99/100]}
}
