package mcpserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
)

// sessionClient is an HTTP client of a server: an address, or a user.
type sessionClient struct {
	t       testing.TB
	h       http.Handler
	address string
	headers []string
}

func (c *sessionClient) do(r *http.Request) *httptest.ResponseRecorder {
	if c.address != "" {
		r.RemoteAddr = c.address + ":1234"
	}
	for i := 0; i < len(c.headers); i += 2 {
		r.Header.Set(c.headers[i], c.headers[i+1])
	}
	return do(c.h, r)
}

// open opens a session and does nothing more.
func (c *sessionClient) open() (id string) {
	c.t.Helper()
	w := c.do(post(withSessions, initialize(withSessions)))
	if id = w.Header().Get("Mcp-Session-Id"); w.Code != http.StatusOK || id == "" {
		c.t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

func (c *sessionClient) use(id string) int {
	return c.do(post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x","arguments":{}}`),
		"Mcp-Session-Id", id)).Code
}

// lives says that a session goes on, ends that it has ended so that its client knows to open another one.
func (c *sessionClient) lives(id, which string) {
	c.t.Helper()
	if code := c.use(id); code != http.StatusOK {
		c.t.Errorf("%s session: %d", which, code)
	}
}

func (c *sessionClient) ended(id, which string) {
	c.t.Helper()
	if code := c.use(id); code != http.StatusNotFound {
		c.t.Errorf("%s session: %d, want 404", which, code)
	}
}

// listen opens the session's event stream, until the returned function is called or the server ends the stream.
func (c *sessionClient) listen(id string) (end func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	r := post(withSessions, "", "Mcp-Session-Id", id)
	r.Method = http.MethodGet
	var ended sync.WaitGroup
	ended.Go(func() { c.do(r.WithContext(ctx)) })
	return func() { cancel(); ended.Wait() }
}

// TestHostileSessions: clients that open sessions and leave them, or hold on to them, end each other's own and nobody
// else's.
func TestHostileSessions(t *testing.T) {
	t.Parallel()
	answers := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) { return ok(text("done")) })
	unlimited := limits.Limits{Rate: 1 << 20}
	at := func(address string) func(*testing.T, *Server) *sessionClient {
		return func(t *testing.T, s *Server) *sessionClient {
			return &sessionClient{t: t, h: s.Handler(), address: address}
		}
	}
	// within runs a case with a clock of its own.
	within := func(name string, bounds limits.Limits, attack func(t *testing.T, s *Server, one, two *sessionClient)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bounds.Rate = 1 << 20
				s := newServer(t, offer(t, nil, "x"), answers, &Options{Limits: bounds})
				attack(t, s, at("192.0.2.1")(t, s), at("192.0.2.2")(t, s))
				synctest.Wait()
				s.Close()
			})
		})
	}
	flood := func(name string, abandoned int, addresses func(i int) string, most int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, offer(t, nil, "x"), answers, &Options{Limits: unlimited})
			c := at("")(t, s)
			for i := range abandoned {
				c.address = addresses(i)
				c.open()
			}
			if n := s.sessions.count(); n > most {
				t.Errorf("%d sessions are left, want %d at most", n, most)
			}
			fresh, best := at("198.51.100.7")(t, s), time.Hour
			for tries := 0; tries < 20 && best > 100*time.Millisecond; tries++ { // the machine may have something else to do
				begin := time.Now()
				fresh.lives(fresh.open(), "the next client's")
				best = min(best, time.Since(begin))
			}
			if t.Logf("a new client's first call after %d abandoned sessions: %v", abandoned, best); best > 100*time.Millisecond {
				t.Errorf("a new client's first call takes %v", best)
			}
		})
	}
	flood("10,000 of one address", 10_000, func(int) string { return "192.0.2.1" }, 512)
	flood("2,000 of as many addresses", 2000, func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, i%250) },
		1024)
	flood("2,000 of one network of IPv6", 2000, func(i int) string { return fmt.Sprintf("[2001:db8::%x]", i) }, 512)

	within("one client ends its own, the longest idle one first", limits.Limits{SessionsPerClient: 3, Sessions: 100},
		func(t *testing.T, s *Server, one, two *sessionClient) {
			other := two.open()
			time.Sleep(time.Minute)
			first, second, third := one.open(), one.open(), one.open()
			time.Sleep(time.Second)
			one.lives(first, "the first")
			time.Sleep(time.Second)
			for range 50 {
				time.Sleep(time.Second)
				last := one.open()
				one.lives(last, "the last")
			}
			for _, id := range []string{first, second, third} {
				one.ended(id, "an early")
			}
			two.lives(other, "another client's")
		})
	within("the order is that of use, not of opening", limits.Limits{SessionsPerClient: 2},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			first := one.open()
			time.Sleep(time.Second)
			second := one.open()
			time.Sleep(time.Second)
			one.lives(first, "the first")
			one.open()
			one.ended(second, "the idle")
			one.lives(first, "the used")
		})
	within("all together end sessions of who has most", limits.Limits{SessionsPerClient: 100, Sessions: 10},
		func(t *testing.T, s *Server, one, two *sessionClient) {
			quiet := two.open()
			time.Sleep(time.Minute)
			for range 40 {
				one.open()
				time.Sleep(time.Second)
			}
			two.lives(quiet, "the quiet client's")
			if n := s.sessions.count(); n != 10 {
				t.Errorf("%d sessions, want 10", n)
			}
		})
	within("a call in flight is not idle", limits.Limits{SessionsPerClient: 2},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			gate := make(chan struct{})
			s.pipeline = caller(func(context.Context, *pipeline.Call) (*pipeline.Result,
				error) {
				<-gate
				return ok(text("done"))
			})
			calling := one.open()
			codes := make(chan int, 1)
			go func() { codes <- one.use(calling) }()
			synctest.Wait()
			for range 10 {
				time.Sleep(time.Minute)
				one.open()
			}
			close(gate)
			if code := <-codes; code != http.StatusOK {
				t.Errorf("the call: %d", code)
			}
			one.lives(calling, "the calling")
		})
	within("a session that has to end gives its call the answer", limits.Limits{SessionsPerClient: 2},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			gate := make(chan struct{})
			s.pipeline = caller(func(context.Context, *pipeline.Call) (*pipeline.Result,
				error) {
				<-gate
				return ok(text("done"))
			})
			codes := make(chan int, 10)
			var ids []string
			for range 3 {
				id := one.open()
				ids = append(ids, id)
				go func() { codes <- one.use(id) }()
				synctest.Wait()
				time.Sleep(time.Second)
			}
			fresh := one.open()
			close(gate)
			for range ids {
				if code := <-codes; code != http.StatusOK {
					t.Errorf("a call: %d", code)
				}
			}
			one.lives(fresh, "the new")
			one.ended(ids[0], "the first")
		})
	within("an open stream is not idle", limits.Limits{SessionsPerClient: 2},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			listening := one.open()
			end := one.listen(listening)
			synctest.Wait()
			for range 10 {
				time.Sleep(time.Minute)
				one.open()
			}
			one.lives(listening, "the listening")
			end()
		})
	within("streams alone keep nobody out", limits.Limits{SessionsPerClient: 3},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			for range 20 {
				defer one.listen(one.open())()
				synctest.Wait()
				time.Sleep(time.Second)
			}
			one.lives(one.open(), "the new")
			if n := s.sessions.count(); n != 3 {
				t.Errorf("%d sessions, want 3", n)
			}
		})
	within("an ended session stays ended", limits.Limits{SessionsPerClient: 1},
		func(t *testing.T, s *Server, one, two *sessionClient) {
			first := one.open()
			one.open()
			for range 3 {
				one.ended(first, "the first")
				two.ended(first, "a stranger's")
			}
			one.listen(first)()
			if n := s.sessions.count(); n != 1 {
				t.Errorf("%d sessions", n)
			}
		})
	within("made-up IDs make no sessions", limits.Limits{}, func(t *testing.T, s *Server, one, _ *sessionClient) {
		for i := range 100 {
			one.ended(strings.Repeat("A", i+1), "a made-up")
		}
		if n := s.sessions.count(); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
	within("idle ones end by themselves", limits.Limits{Sessions: 2, SessionsPerClient: 2, SessionIdle: time.Minute},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			first, second := one.open(), one.open()
			time.Sleep(50 * time.Second)
			one.lives(first, "an idle for 50s")
			time.Sleep(50 * time.Second)
			one.ended(second, "an idle for 100s")
			one.lives(first, "an idle for 50s")
			one.open()
			one.lives(first, "the first")
		})
	within("smaller limits hold for who comes", limits.Limits{Sessions: 20, SessionsPerClient: 20},
		func(t *testing.T, s *Server, one, two *sessionClient) {
			for range 20 {
				one.open()
			}
			put, err := s.Reconfigure(&Options{Limits: limits.Limits{Sessions: 4, SessionsPerClient: 2, Rate: 1 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			put()
			two.lives(two.open(), "the new")
			one.lives(one.open(), "the new")
			if n := s.sessions.count(); n != 3 {
				t.Errorf("%d sessions, want 2 and 1", n)
			}
		})
	within("a client that says much of itself is not kept", limits.Limits{},
		func(t *testing.T, s *Server, one, _ *sessionClient) {
			body := strings.Replace(initialize(withSessions), `"name":"test"`, `"name":"`+strings.Repeat("x", 1<<20)+
				`"`, 1)
			if w := one.do(post(withSessions, body)); w.Code != http.StatusBadRequest ||
				!strings.Contains(w.Body.String(), "64 KiB") {
				t.Errorf("%d %.200s", w.Code, w.Body)
			}
			if n := s.sessions.count(); n != 0 {
				t.Errorf("%d sessions", n)
			}
		})
	t.Run("users at one address are clients of their own", func(t *testing.T) {
		t.Parallel()
		var tokens []string
		var options auth.Options
		for _, name := range []string{"aki", "mallory"} {
			token, hash := bearer.New()
			tokens, options.Tokens = append(tokens, token), append(options.Tokens, bearer.Token{Name: name, Hash: hash})
		}
		opened, err := auth.New(options)
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, offer(t, nil, "x"), answers,
			&Options{Auth: opened, Limits: limits.Limits{Sessions: 8, SessionsPerClient: 4, Rate: 1 << 20}})
		aki := &sessionClient{t: t, h: s.Handler(), headers: []string{"Authorization", "Bearer " + tokens[0]}}
		mallory := &sessionClient{t: t, h: s.Handler(), headers: []string{"Authorization", "Bearer " + tokens[1]}}
		id := aki.open()
		for range 50 {
			mallory.open()
		}
		aki.lives(id, "another user's")
		mallory.ended(id, "another user's, taken over, a")
		aki.lives(id, "another user's")
	})
}

// TestHostileStreams: subscription streams are shared out among clients.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	bounds := limits.Limits{Sessions: 6, SessionsPerClient: 4, Calls: 10, CallsPerClient: 4, Rate: 1, Burst: 1}
	enter := func(t *testing.T, l *limits.Limiter, key string, n int, ended *int) (opened int) {
		t.Helper()
		for range n {
			if _, err := l.EnterStream(key, func() { *ended++ }); err == nil {
				opened++
			}
		}
		return opened
	}
	t.Run("one client has its share", func(t *testing.T) {
		l, ended := limits.New(bounds), 0
		if n := enter(t, l, "a", 10, &ended); n != 4 || ended != 0 {
			t.Errorf("%d streams, %d ended", n, ended)
		}
	})
	t.Run("two clients leave room for a third", func(t *testing.T) {
		l, a, b := limits.New(bounds), 0, 0
		enter(t, l, "a", 4, &a)
		if n := enter(t, l, "b", 4, &b); n != 3 || a != 1 || b != 0 {
			t.Errorf("b has %d, a lost %d, b lost %d", n, a, b)
		}
		if n := enter(t, l, "c", 4, &b); n != 2 || a+b != 3 {
			t.Errorf("c has %d, others lost %d", n, a+b)
		}
	})
	t.Run("nobody loses one for a client that has as many", func(t *testing.T) {
		l, ended := limits.New(bounds), 0
		for i := range 6 {
			enter(t, l, fmt.Sprint(i), 1, &ended)
		}
		if n := enter(t, l, "7", 1, &ended); n != 0 || ended != 0 {
			t.Errorf("%d opened, %d ended", n, ended)
		}
	})
	t.Run("a stream over HTTP ends for another client's", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, offerChanging(t, changing{}), nil,
				&Options{Limits: limits.Limits{Sessions: 2, SessionsPerClient: 2}})
			one, two := &sessionClient{t: t, h: s.Handler(), address: "192.0.2.1"},
				&sessionClient{t: t, h: s.Handler(), address: "192.0.2.2"}
			subscribe := func(c *sessionClient) (ended chan struct{}) {
				ended = make(chan struct{})
				go func() {
					defer close(ended)
					c.do(post(withoutSessions, message(withoutSessions, 1, transport.MethodListen,
						`{"notifications":{"toolsListChanged":true}}`)))
				}()
				synctest.Wait()
				return ended
			}
			first, second := subscribe(one), subscribe(one)
			third := subscribe(two)
			<-first
			select {
			case <-second:
				t.Error("the second stream has ended")
			case <-third:
				t.Error("the other client's stream has ended")
			default:
			}
			if n := s.Load().Streams; n != 2 {
				t.Errorf("%d streams", n)
			}
			s.Close()
			<-second
			<-third
		})
	})
}

// TestHostileSubscriptions: a backend is asked for notifications as long as somebody wants them, and no longer.
func TestHostileSubscriptions(t *testing.T) {
	t.Parallel()
	const uri = "probe://item/1"
	subscribe := func(t *testing.T, c *sessionClient, id, method string) {
		t.Helper()
		if w := c.do(post(withSessions, message(withSessions, 2, method, `{"uri":"`+uri+`"}`), "Mcp-Session-Id", id)); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	for name, end := range map[string]func(t *testing.T, s *Server, c *sessionClient, id string){
		"unsubscribed": func(t *testing.T, _ *Server, c *sessionClient, id string) {
			subscribe(t, c, id, "resources/unsubscribe")
		},
		"subscribed twice, unsubscribed once": func(t *testing.T, _ *Server, c *sessionClient, id string) {
			subscribe(t, c, id, "resources/subscribe")
			subscribe(t, c, id, "resources/unsubscribe")
		},
		"unsubscribed twice, with another subscriber that then goes": func(t *testing.T, s *Server, c *sessionClient,
			id string) {
			other := c.open()
			subscribe(t, c, other, "resources/subscribe")
			subscribe(t, c, id, "resources/unsubscribe")
			subscribe(t, c, id, "resources/unsubscribe")
			synctest.Wait()
			if b := s.catalog.View().Tools[0].Source.Backend.(*telling); !b.tell(uri) {
				t.Error("the watch of the other subscriber has ended")
			}
			subscribe(t, c, other, "resources/unsubscribe")
		},
		"the session is closed": func(t *testing.T, _ *Server, c *sessionClient, id string) {
			r := post(withSessions, "", "Mcp-Session-Id", id)
			r.Method = http.MethodDelete
			c.do(r)
		},
		"the session is idle": func(*testing.T, *Server, *sessionClient, string) { time.Sleep(2 * time.Hour) },
		"the session is ended for another": func(_ *testing.T, _ *Server, c *sessionClient, _ string) {
			for range 3 {
				time.Sleep(time.Second)
				c.open()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				backend := &telling{asked: map[string]func(){}}
				s := newServer(t, offerChanging(t, backend), nil, &Options{Limits: limits.Limits{SessionsPerClient: 2}})
				c := &sessionClient{t: t, h: s.Handler()}
				id := c.open()
				c.do(post(withSessions, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id))
				subscribe(t, c, id, "resources/subscribe")
				if !backend.tell(uri) {
					t.Fatal("not asked")
				}
				end(t, s, c, id)
				synctest.Wait()
				if backend.tell(uri) {
					t.Error("the backend is still asked")
				}
				if n := len(s.subscriptions.watches); n != 0 {
					t.Errorf("%d watches are left", n)
				}
				s.Close()
			})
		})
	}
	t.Run("the stream ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			backend := &telling{asked: map[string]func(){}}
			s := newServer(t, offerChanging(t, backend), nil, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			ended.Go(func() {
				body := message(withoutSessions, 1, transport.MethodListen,
					`{"notifications":{"resourceSubscriptions":["`+uri+
						`","`+uri+`"]}}`)
				do(s.Handler(), post(withoutSessions, body).WithContext(ctx))
			})
			synctest.Wait()
			if !backend.tell(uri) {
				t.Error("not asked")
			}
			cancel()
			ended.Wait()
			synctest.Wait()
			if backend.tell(uri) || len(s.subscriptions.watches) > 0 {
				t.Error("the backend is still asked")
			}
			s.Close()
		})
	})
}

// TestHostileSessionsOfReplicas: a session that ends to make room ends at every replica, and nobody is refused.
func TestHostileSessionsOfReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "x"), says, func(o *Options) {
		o.Limits = limits.Limits{SessionsPerClient: 20, Sessions: 50, Rate: 1 << 20}
		o.TrustedProxies = []string{"127.0.0.1", "::1"}
	})
	a, b := f.replicas[0], f.replicas[1]
	use := func(t *testing.T, r *replica, id string) int {
		response, _ := r.send(t, id, message(withSessions, 1, "tools/call", `{"name":"x","arguments":{}}`))
		return response.StatusCode
	}
	quiet := a.initialize(t, "{}", "X-Forwarded-For", "198.51.100.1")
	first := a.initialize(t, "{}")
	if code := use(t, b, first); code != http.StatusOK {
		t.Fatalf("the session at another replica: %d", code)
	}
	const abandoned = 300
	for i := range abandoned {
		f.replicas[i%3].initialize(t, "{}")
	}
	t.Run("the next client is served at once", func(t *testing.T) {
		best := time.Hour
		for range 3 {
			begin := time.Now()
			if code := use(t, b, a.initialize(t, "{}", "X-Forwarded-For", "198.51.100.2")); code != http.StatusOK {
				t.Errorf("%d", code)
			}
			best = min(best, time.Since(begin))
		}
		t.Logf("a new client's first call after %d abandoned sessions: %v", abandoned, best)
	})
	t.Run("the first session has ended everywhere", func(t *testing.T) {
		for i, r := range f.replicas {
			if !testwait.Until(t, func() bool { return use(t, r, first) == http.StatusNotFound }) {
				t.Fatalf("it lives at replica %d", i)
			}
		}
	})
	t.Run("another client's session goes on", func(t *testing.T) {
		if response, body := b.send(t, quiet, message(withSessions, 1, "tools/list", `{}`)); response.StatusCode != http.StatusOK {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
}
