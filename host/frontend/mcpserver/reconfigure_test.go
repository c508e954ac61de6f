package mcpserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// reconfigure puts options in force.
func reconfigure(t *testing.T, s *Server, options *Options) {
	t.Helper()
	put, err := s.Reconfigure(options)
	if err != nil {
		t.Fatal(err)
	}
	put()
}

// TestReconfigureWho: who may come in, from where and under which name changes with the next request; what is wrong
// changes nothing.
func TestReconfigureWho(t *testing.T) {
	t.Parallel()
	first, firstHash := bearer.New()
	second, secondHash := bearer.New()
	with := func(hash string) *auth.Auth {
		return newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash}}})
	}
	s := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: with(firstHash)})
	h := s.Handler()
	list := func(token, host, origin string) int {
		r := post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization", "Bearer "+token,
			"Origin", origin)
		r.Host = host
		return do(h, r).Code
	}
	if list(first, "localhost", "") != 200 || list(second, "localhost", "") != 401 ||
		list(first, "hako.example", "") != 403 {
		t.Error("at first")
	}
	for _, bad := range []*Options{{Origins: []string{"no origin"}}, {Hosts: []string{"https://x"}}, {TrustedProxies: []string{"proxy"}}, {Limits: limits.Limits{Rate: -1}}} {
		if _, err := s.Reconfigure(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	reconfigure(t, s, &Options{Auth: with(secondHash), Hosts: []string{"hako.example"},
		Origins: []string{"https://app.example"}})
	if list(first, "localhost", "") != 401 || list(second, "hako.example", "https://app.example") != 200 {
		t.Error("after the change")
	}
	reconfigure(t, s, nil)
	if list("", "localhost", "") != 200 || list("", "hako.example", "") != 403 {
		t.Error("without authentication")
	}
}

// opening tells when a stream has begun.
type opening struct {
	*httptest.ResponseRecorder
	once sync.Once
	open chan struct{}
}

func (o *opening) Flush() {
	o.ResponseRecorder.Flush()
	o.once.Do(func() { close(o.open) })
}

// TestReconfigureEndsStreams: a stream that a token opened ends when other tokens are in force, and a call in flight is
// answered.
func TestReconfigureEndsStreams(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			token, hash := bearer.New()
			begun, finish := make(chan struct{}), make(chan struct{})
			slow := func(context.Context, *abi.Request, func(abi.Progress)) (*abi.Response, error) {
				close(begun)
				<-finish
				return text("done"), nil
			}
			s := newServer(t, offer(t, slow, "x"), nil,
				&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash}}})})
			headers := []string{"Authorization", "Bearer " + token}
			open := post(version, message(version, 1, transport.MethodListen,
				`{"notifications":{"toolsListChanged":true}}`),
				headers...)
			if version == withSessions {
				headers = append(headers, "Mcp-Session-Id", openSession(t, s.Handler(), headers...))
				open = post(version, "", headers...)
				open.Method = http.MethodGet
			}
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() {
				answered <- do(s.Handler(), post(version,
					message(version, 2, "tools/call", `{"name":"x","arguments":{}}`), headers...))
			}()
			<-begun
			stream, ended := &opening{ResponseRecorder: httptest.NewRecorder(), open: make(chan struct{})},
				make(chan struct{})
			go func() {
				defer close(ended)
				if s.Handler().ServeHTTP(stream, open); stream.Code != http.StatusOK {
					t.Errorf("the stream: %d %s", stream.Code, stream.Body)
				}
			}()
			select {
			case <-ended:
				t.Fatal("the stream ended by itself")
			case <-stream.open:
			}
			reconfigure(t, s, nil)
			<-ended
			close(finish)
			if w := <-answered; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "done") {
				t.Errorf("the call: %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestReconfigureWhat: what clients are told and granted.
func TestReconfigureWhat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &manifest.Manifest{Name: "test", Tools: []manifest.Tool{tool("x")}}
		m.Tools[0].Description = manifest.Text{"en": "English words", "ja": "日本語の説明"}
		s := newServer(t, offerAll(t, serveEverything, m), nil, &Options{Instructions: "first"})
		h := s.Handler()
		ask := func(version, method, params string) string {
			if version == withSessions {
				return do(h, post(version, initialize(version))).Body.String()
			}
			return do(h, post(version, message(version, 1, method, params))).Body.String()
		}
		for _, version := range versions {
			if got := ask(version, "server/discover", "{}"); !strings.Contains(got, `"instructions":"first"`) {
				t.Errorf("%s: %s", version, got)
			}
		}
		if got := ask(withoutSessions, "tools/list", "{}"); !strings.Contains(got, "English words") ||
			!strings.Contains(got, `"ttlMs":10000`) {
			t.Error(got)
		}
		reconfigure(t, s, &Options{Instructions: "second", Language: "ja", ListTTL: time.Minute})
		for _, version := range versions {
			if got := ask(version, "server/discover", "{}"); !strings.Contains(got, `"instructions":"second"`) {
				t.Errorf("%s: %s", version, got)
			}
		}
		if got := ask(withoutSessions, "tools/list", "{}"); !strings.Contains(got, "日本語の説明") ||
			!strings.Contains(got, `"ttlMs":60000`) {
			t.Error(got)
		}
		reconfigure(t, s, &Options{Limits: limits.Limits{Message: 100, Rate: 1, Burst: 2}})
		if w := do(h, post(withoutSessions, message(withoutSessions, 1, "tools/list", "{}"))); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a long message: %d %s", w.Code, w.Body)
		}
		last := 0
		for range 4 {
			last = do(h, post(withoutSessions, message(withoutSessions, 1, "tools/list", "{}"))).Code
		}
		if last != http.StatusTooManyRequests {
			t.Errorf("many messages: %d", last)
		}
	})
}
