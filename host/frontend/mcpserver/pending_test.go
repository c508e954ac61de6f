package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// curious is a server that asks for a name, twice, or to open a page.
type curious struct {
	// begun and ended count calls.
	begun, ended atomic.Int32
}

func (c *curious) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	c.begun.Add(1)
	defer c.ended.Add(1)
	r := &elicitation.Request{Message: "Who are you?",
		Schema: []byte(`{"type":"object","properties":{"name":{"type":"string","maxLength":10}},"required":["name"]}`)}
	if invocation.Request.Name == "visit" {
		r = &elicitation.Request{Message: "Sign in.", URL: "https://example.com/sign-in?x=1", ID: "theirs"}
	}
	said := ""
	for range 2 {
		answer, err := invocation.Elicit(ctx, r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said += fmt.Sprintf("%s %v %v; ", answer.Action, answer.Content["name"], err)
	}
	return text("%s", said), nil
}

// asking is a server of which both tools ask.
func asking(t *testing.T, options *Options) (*Server, *curious) {
	t.Helper()
	c, backend := new(catalog.Catalog), new(curious)
	m := &manifest.Manifest{Name: "crm", Version: "1.0.0", Description: manifest.Text{"en": "A test."},
		Tools: []manifest.Tool{tool("greet"), tool("visit")}}
	if err := errors.Join(m.Validate(), c.Put(catalog.Source{Name: m.Name, Backend: backend, Asks: true, Upstream: true}, m)); err != nil {
		t.Fatal(err)
	}
	return newServer(t, c, pipeline.New(c, nil), options), backend
}

// TestServersQuestions: what a server asks in the middle of a call reaches the person at the client, in its name, at
// every frontend and in both versions.
func TestServersQuestions(t *testing.T) {
	t.Parallel()
	able := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{},
		URL: &mcp.URLElicitationCapabilities{}}}
	pages := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		for name, test := range map[string]struct {
			tool   string
			able   *mcp.ClientCapabilities
			person person
			want   string
			asked  int
		}{
			"accepted": {"greet", able, answering("accept", map[string]any{"name": "Aki"}),
				"accept Aki <nil>; accept Aki <nil>; ", 2},
			"declined":     {"greet", able, answering("decline", nil), "decline <nil> <nil>; decline <nil> <nil>; ", 1},
			"dismissed":    {"greet", able, answering("cancel", nil), "cancel <nil> <nil>; cancel <nil> <nil>; ", 1},
			"a page":       {"visit", able, answering("accept", nil), "accept <nil> <nil>; accept <nil> <nil>; ", 2},
			"pages alone":  {"visit", pages, answering("accept", nil), "accept <nil> <nil>; accept <nil> <nil>; ", 2},
			"no forms":     {"greet", pages, answering("accept", nil), "decline <nil> the caller's frontend cannot ask anybody", 0},
			"no pages":     {"visit", nil, answering("accept", nil), "decline <nil> the caller's frontend cannot ask anybody", 0},
			"nonsense":     {"greet", able, answering("maybe", nil), "cancel <nil> <nil>; ", 1},
			"nobody there": {"greet", nil, nil, "decline <nil> the caller's frontend cannot ask anybody", 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, _ := asking(t, nil)
				var asked []*mcp.ElicitParams
				options := &mcp.ClientOptions{Capabilities: test.able}
				if test.person != nil {
					options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult,
						error) {
						asked = append(asked, req.Params)
						return test.person(ctx, req.Params)
					}
				}
				session := frontend.connect(t, s, version, options)
				if got := textOf(t, callWith(t, session, test.tool, 1)); !strings.HasPrefix(got, test.want) ||
					len(asked) != test.asked {
					t.Errorf("%q, asked %d times", got, len(asked))
				}
				for _, p := range asked {
					if !strings.Contains(p.Message, "The server crm asks") || p.ElicitationID == "theirs" ||
						(p.URL == "https://example.com/sign-in?x=1") != (test.tool == "visit") {
						t.Errorf("asked %+v", p)
					}
				}
			})
		}
	})
}

// TestAnswerThatDoesNotFit: a client's answer is held against the form, whatever the client has checked.
func TestAnswerThatDoesNotFit(t *testing.T) {
	t.Parallel()
	s, _ := asking(t, nil)
	h := s.Handler()
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"name":"longer than ten"}}`:  "does not match the form",
		`{"action":"accept","content":{"name":"Aki","admin":true}}`: "does not match the form",
		`{"action":"accept","content":{"name":{"first":"A"}}}`:      "does not match the form",
		`{"action":"accept"}`:                                           "does not match the form",
		`{"action":"accept","content":{"name":"Aki"}}`:                  "accept Aki",
		`{"action":"decline","content":{"name":"not to be passed on"}}`: "decline <nil>",
	} {
		reply := callAgain(t, h, "greet", "", "")
		for reply.state != "" {
			reply = callAgain(t, h, "greet", reply.state, `,"inputResponses":{"`+reply.key+`":`+answer+`}`)
		}
		if !strings.Contains(reply.result, want) || strings.Contains(reply.result, "longer than ten") {
			t.Errorf("%s: %s", answer, reply.result)
		}
	}
}

// TestMisfitInSession: an answer that the client itself finds wrong is none, and nothing of it is repeated.
func TestMisfitInSession(t *testing.T) {
	t.Parallel()
	inSessions(t, func(t *testing.T, frontend frontend) {
		s, _ := asking(t, nil)
		session := frontend.connect(t, s, withSessions,
			answering("accept", map[string]any{"name": "longer than ten"}).options())
		if got := textOf(t, callWith(t, session, "greet", 1)); !strings.HasPrefix(got, "cancel <nil> the answer does not match the form") || strings.Contains(got, "ten") {
			t.Errorf("%q", got)
		}
	})
}

// roundReply is the answer to one request of a call.
type roundReply struct{ result, state, key string }

var (
	statePattern    = regexp.MustCompile(`"requestState":"(call_[-a-zA-Z0-9]+)"`)
	questionPattern = regexp.MustCompile(`"(question[0-9]+)":`)
)

// callAgain sends one request of a call without sessions.
func callAgain(t *testing.T, h http.Handler, tool, state, more string, headers ...string) roundReply {
	t.Helper()
	return callAgainWith(t, h, tool, `{"n":1}`, state, more, headers...)
}

func callAgainWith(t *testing.T, h http.Handler, tool, arguments, state, more string, headers ...string) roundReply {
	t.Helper()
	return callAgainIn(t.Context(), h, roundBody(tool, arguments, state, more), headers...)
}

// roundBody is the message of a client that can ask anything.
func roundBody(tool, arguments, state, more string) string {
	if state != "" {
		more += `,"requestState":"` + state + `"`
	}
	body := message(withoutSessions, 1, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+more+`}`)
	return strings.Replace(body, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{},"url":{}}}`,
		1)
}

func callAgainIn(ctx context.Context, h http.Handler, body string, headers ...string) (r roundReply) {
	w := do(h, post(withoutSessions, body, headers...).WithContext(ctx))
	r.result = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(w.Body.String())
	if m := statePattern.FindStringSubmatch(r.result); m != nil {
		r.state = m[1]
	}
	if m := questionPattern.FindStringSubmatch(r.result); m != nil {
		r.key = m[1]
	}
	return r
}

// TestPendingCall: without sessions, a call that waits goes on for the one who made it, with the same arguments, and
// for nobody else.
func TestPendingCall(t *testing.T) {
	t.Parallel()
	aki, akiHash := bearer.New()
	ben, benHash := bearer.New()
	s, backend := asking(t, &Options{Auth: newAuth(t,
		auth.Options{Tokens: []bearer.Token{{Name: "aki", Hash: akiHash}, {Name: "ben", Hash: benHash}}})})
	h := s.Handler()
	by := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	const name = `{"action":"accept","content":{"name":"Aki"}}`
	first := callAgain(t, h, "greet", "", "", by(aki)...)
	if !strings.Contains(first.result, `"resultType":"input_required"`) || first.state == "" ||
		first.key != "question1" {
		t.Fatalf("%s", first.result)
	}
	answer := `,"inputResponses":{"question1":` + name + `}`
	for what, reply := range map[string]roundReply{
		"another user":      callAgain(t, h, "greet", first.state, answer, by(ben)...),
		"another tool":      callAgain(t, h, "visit", first.state, answer, by(aki)...),
		"other arguments":   callAgainWith(t, h, "greet", `{"n":2}`, first.state, answer, by(aki)...),
		"a state made up":   callAgain(t, h, "greet", "call_AAAAAAAAAAAAAAAAAAAAAAAAAA", answer, by(aki)...),
		"nobody in general": callAgain(t, h, "greet", first.state[:len(first.state)-1], answer, by(aki)...),
	} {
		if !strings.Contains(reply.result, "names no pending call of yours") {
			t.Errorf("%s: %s", what, reply.result)
		}
	}
	if again := callAgain(t, h, "greet", first.state, "", by(aki)...); again.key != "question1" ||
		again.state != first.state {
		t.Errorf("without an answer: %s", again.result)
	}
	second := callAgainWith(t, h, "greet", `{ "n": 1.0 }`, first.state, answer, by(aki)...)
	if second.key != "question2" {
		t.Fatalf("%s", second.result)
	}
	if stale := callAgain(t, h, "greet", first.state, answer, by(aki)...); stale.key != "question2" {
		t.Errorf("the first answer for the second question: %s", stale.result)
	}
	last := callAgain(t, h, "greet", first.state, `,"inputResponses":{"question2":`+name+`}`, by(aki)...)
	if !strings.Contains(last.result, "accept Aki <nil>; accept Aki <nil>; ") {
		t.Errorf("%s", last.result)
	}
	if after := callAgain(t, h, "greet", first.state, answer, by(aki)...); !strings.Contains(after.result, "names no pending call of yours") {
		t.Errorf("after its end: %s", after.result)
	}
	if n := backend.begun.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestPendingCallOfAnotherIssuersUser: users of one name are two where their issuers are.
func TestPendingCallOfAnotherIssuersUser(t *testing.T) {
	t.Parallel()
	by := func(issuer string) string {
		return callerKey(pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: "aki"},
			&exchange{identity: &auth.Identity{User: "aki", Issuer: issuer}})
	}
	one, same, other := by("https://a.example"), by("https://a.example"), by("https://b.example")
	if one == other || one != same {
		t.Errorf("%s, %s, %s", one, same, other)
	}
}

// TestPendingCallGoesOnWithoutCapability: a request that names a call never makes another one, whatever the client says
// of itself.
func TestPendingCallGoesOnWithoutCapability(t *testing.T) {
	t.Parallel()
	s, backend := asking(t, nil)
	first := callAgain(t, s.Handler(), "greet", "", "")
	const decline = `,"inputResponses":{"question1":{"action":"decline"}}`
	body := strings.Replace(roundBody("greet", `{"n":1}`, first.state, decline), `{"elicitation":{"form":{},"url":{}}}`,
		`{}`, 1)
	if got := callAgainIn(t.Context(), s.Handler(), body); !strings.Contains(got.result, "decline <nil> <nil>; decline") ||
		backend.begun.Load() != 1 {
		t.Errorf("%d calls, %s", backend.begun.Load(), got.result)
	}
	body = strings.Replace(roundBody("greet", `{"n":1}`, "call_AAAA", decline), `{"elicitation":{"form":{},"url":{}}}`,
		`{}`, 1)
	if got := callAgainIn(t.Context(), s.Handler(), body); !strings.Contains(got.result, "names no pending call of yours") ||
		backend.begun.Load() != 1 {
		t.Errorf("%d calls, %s", backend.begun.Load(), got.result)
	}
}

// TestResultsAreNotKept: nothing is left of calls that have given their results.
func TestResultsAreNotKept(t *testing.T) {
	t.Parallel()
	s, _ := asking(t, nil)
	reply := callAgain(t, s.Handler(), "greet", "", "")
	for reply.state != "" {
		reply = callAgain(t, s.Handler(), "greet", reply.state, `,"inputResponses":{"`+reply.key+
			`":{"action":"accept","content":{"name":"Aki"}}}`)
	}
	s.pending.work.Wait()
	if n := len(s.pending.byKey); n > 0 {
		t.Errorf("%d are kept", n)
	}
}

// TestManyTalks: who leaves many calls waiting gets no more questions, and the calls end with the server.
func TestManyTalks(t *testing.T) {
	t.Parallel()
	s, backend := asking(t, nil)
	h := s.Handler()
	for range maxPendingPerCaller {
		if reply := callAgain(t, h, "greet", "", ""); reply.state == "" {
			t.Fatalf("%s", reply.result)
		}
	}
	if reply := callAgain(t, h, "greet", "", ""); !strings.Contains(reply.result, "decline <nil> the caller's frontend cannot ask anybody") {
		t.Errorf("%s", reply.result)
	}
	if err := s.Close(); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
	s.pending.work.Wait()
	if begun, ended := backend.begun.Load(), backend.ended.Load(); begun != maxPendingPerCaller+1 || ended != begun {
		t.Errorf("%d begun, %d ended", begun, ended)
	}
}

// TestForeignState: a request with a requestState that hako did not give out is not made a call of its own.
func TestForeignState(t *testing.T) {
	t.Parallel()
	s, backend := asking(t, nil)
	for _, state := range []string{"x", "acall_1", strings.Repeat("a", 60_000)} {
		if got := callAgain(t, s.Handler(), "greet", state, ""); !strings.Contains(got.result, "start again with a request without it") {
			t.Errorf("%.20s: %.200s", state, got.result)
		}
	}
	if n := backend.begun.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestDisplaced: the request of a client that has left does not end a call which a later request continues.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	call := &pendingCall{done: make(chan struct{}), cancel: func() { t.Error("the call is canceled") }}
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 100 { // which of the two is noticed first is random
		first := call.attend(nil)
		call.attend(nil)
		if _, err := call.next(left, first); !errors.Is(err, errDisplaced) {
			t.Fatal(err)
		}
	}
}
