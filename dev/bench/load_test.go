package bench

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/mcpload"
)

var protocolVersions = []string{mcpload.WithSessions, mcpload.Sessionless}

// connect returns a client with one keep-alive connection.
func connect(t *testing.T, url, version string) *mcpload.Client {
	t.Helper()
	c := &mcpload.Client{HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}, URL: url,
		Version: version}
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// rate is the result of load.
type rate struct {
	calls     int
	perSecond float64
	p50, p99  time.Duration
}

// load calls a tool from n clients for the given time.
func load(t *testing.T, url, version string, n int, tool, arguments, want string, duration time.Duration) rate {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	clients := make([]*mcpload.Client, n)
	for i := range clients {
		clients[i] = connect(t, url, version)
	}
	begin := time.Now()
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			body := c.Body(tool, arguments)
			var own []time.Duration
			for time.Since(begin) < duration {
				start := time.Now()
				if err := c.Call(t.Context(), tool, body, want); err != nil {
					t.Errorf("%s, version %s, %d clients: %v", tool, version, n, err)
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
		c.HTTP.CloseIdleConnections()
	}
	if len(all) == 0 {
		t.Fatal("no call came back")
	}
	slices.Sort(all)
	return rate{len(all), float64(len(all)) / elapsed.Seconds(), all[len(all)/2], all[len(all)*99/100]}
}
