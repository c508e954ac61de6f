package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/dev/kit/mcpload"
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

// call makes a call of a protocol version without sessions. What is wanted may be an error, whose status is not 200.
func (s *server) call(ctx context.Context, w *work) error {
	_, data, err := s.calls.Post(ctx, "tools/call", w.tool, s.calls.Body(w.tool, w.arguments))
	switch {
	case w.want == "" && err == nil, w.want != "" && bytes.Contains(data, []byte(w.want)):
		return nil
	case err == nil:
		err = fmt.Errorf("the answer has no %q: %.200s", w.want, data)
	}
	return fmt.Errorf("%s: %w", w.name, err)
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
	c := &mcpload.Client{HTTP: s.client, URL: s.base + "/mcp", Version: mcpload.WithSessions}
	if err := c.Open(ctx); err != nil {
		return err
	}
	_, _, err := c.Post(ctx, "tools/list", "", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		return err
	}
	if err := c.Call(ctx, "file_read", c.Body("file_read", `{"path":"soak.txt"}`), "soak"); err != nil {
		return err
	}
	if polite {
		return c.End(ctx)
	}
	return nil
}
