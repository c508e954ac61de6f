package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// workers limits the calls under way.
const workers = 32

// work is one kind of call.
type work struct {
	name, tool, arguments string
	// want is in every answer.
	want string
	// weight is its share of the load.
	weight int
}

var mix = []work{
	{"weather", "get_weather", `{"location":"東京","date":"tomorrow"}`, "気象庁", 6},
	{"read", "file_read", `{"path":"soak.txt"}`, "soak", 6},
	{"write", "file_write", `{"path":"soak.txt","content":"soak"}`, "", 2},
	{"database", "create_task", `{"project_id":"soak","title":"t"}`, "", 1},
	{"database", "list_projects", `{}`, "", 2},
	{"wrong", "file_read", `{"file":1}`, "path", 1},
	{"failing", "file_read", `{"path":"missing.txt"}`, "missing.txt", 1},
	{"unknown", "no_such_tool", `{}`, "no_such_tool", 1},
}

// counts are calls that were answered as they should, and others with the first of each kind.
type counts struct {
	good, bad, late, sessions atomic.Int64
	first                     sync.Map
}

// capacity measures how many calls a second workers get answered that wait for each answer, after a while of warming
// up.
func (s *server) capacity(ctx context.Context, duration time.Duration) (float64, error) {
	if err := s.call(ctx, &mix[2]); err != nil {
		return 0, err
	}
	closed := func(duration time.Duration) int64 {
		var c counts
		var group sync.WaitGroup
		end := time.Now().Add(duration)
		for range workers {
			group.Go(func() {
				for time.Now().Before(end) && ctx.Err() == nil {
					s.one(ctx, &c)
				}
			})
		}
		group.Wait()
		return c.good.Load() + c.bad.Load()
	}
	closed(3 * duration)
	return float64(closed(duration)) / duration.Seconds(), ctx.Err()
}

// load sends calls at a rate until ctx ends, whether they are answered or not, and lets clients come and go.
func (s *server) load(ctx context.Context, rate float64) *counts {
	c := new(counts)
	due := make(chan struct{}, 4*workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range due {
				s.one(context.WithoutCancel(ctx), c)
			}
		})
	}
	group.Go(func() { s.visit(ctx, c) })
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	owed, last := 0.0, time.Now()
	for ctx.Err() == nil {
		<-tick.C
		owed += rate * time.Since(last).Seconds()
		for last = time.Now(); owed >= 1; owed-- {
			select {
			case due <- struct{}{}:
			default:
				c.late.Add(1) // the server is behind: the call does not come
			}
		}
	}
	close(due)
	group.Wait()
	return c
}

// one makes one call of the mix.
func (s *server) one(ctx context.Context, c *counts) {
	n := rand.IntN(20)
	for i := range mix {
		if n -= mix[i].weight; n >= 0 {
			continue
		}
		if err := s.call(ctx, &mix[i]); err != nil {
			c.bad.Add(1)
			if _, seen := c.first.LoadOrStore(mix[i].name, true); !seen {
				fmt.Println("soak:", err)
			}
			return
		}
		c.good.Add(1)
		return
	}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}},`

// call makes a call of a protocol version without sessions.
func (s *server) call(ctx context.Context, w *work) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`, meta,
		w.tool, w.arguments)
	_, text, err := s.post(ctx, body, map[string]string{"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": w.tool})
	if err == nil && !strings.Contains(text, w.want) {
		return fmt.Errorf("%s: the answer has no %q: %.200s", w.name, w.want, text)
	}
	return err
}

func (s *server) post(ctx context.Context, body string, headers map[string]string) (http.Header, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/mcp", bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.Header, string(text), err
}

// visit lets clients of a protocol version with sessions come, call and go, ten in a second; every other one leaves
// without a word.
func (s *server) visit(ctx context.Context, c *counts) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.session(context.WithoutCancel(ctx), n%2 == 0) == nil {
				c.sessions.Add(1)
			}
		}
	}
}

func (s *server) session(ctx context.Context, polite bool) error {
	header, _, err := s.post(ctx,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`, nil)
	if err != nil {
		return err
	}
	known := map[string]string{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"file_read","arguments":{"path":"soak.txt"}}}`,
	} {
		if _, _, err := s.post(ctx, body, known); err != nil {
			return err
		}
	}
	if !polite {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.base+"/mcp", nil)
	if err != nil {
		return err
	}
	for name, value := range known {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
