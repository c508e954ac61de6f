package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/pdk/abi"
)

// TestNothingIsMissed makes calls while streams and lists break in many ways: each is made and answered once.
func TestNothingIsMissed(t *testing.T) {
	t.Parallel()
	list, stream, send := "/v1/sessions/*/events", "/v1/sessions/*/events/stream", "/v1/sessions/*/events"
	for _, test := range []struct {
		name   string
		faults []fault.Fault
		change func(*world)
	}{
		{"a stream that ends in the middle", nil, nil},
		{"a stream that cannot be opened", []fault.Fault{{Path: stream, Status: 500, Times: 3}}, nil},
		{"a stream that is no stream", []fault.Fault{{Path: stream, Status: 200, Body: "<html>", Times: 2}}, nil},
		{"a stream with what is no JSON",
			[]fault.Fault{{Path: stream, Status: 200, Times: 2, Body: "event: message\ndata: {\"type\":\n\n",
				Header: http.Header{"Content-Type": {"text/event-stream"}}}}, nil},
		{"a stream with an error",
			[]fault.Fault{{Path: stream, Status: 200, Times: 2,
				Body:   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
				Header: http.Header{"Content-Type": {"text/event-stream"}}}}, nil},
		{"a list that is cut off", []fault.Fault{{Method: "GET", Path: list, Truncate: true, Times: 3}}, nil},
		{"a list that is late", []fault.Fault{{Method: "GET", Path: list, Delay: 100 * time.Millisecond, Times: 3}},
			nil},
		{"overload", []fault.Fault{{Path: stream, Status: 529, Times: 1},
			{Method: "GET", Path: list, Status: 529, Times: 2},
			{Method: "POST", Path: send, Status: 529, Times: 3}}, nil},
		{"rate limits", []fault.Fault{{Method: "POST", Path: send, Status: 429,
			Header: http.Header{"Retry-After": {"0.05"}}, Times: 2},
			{Path: stream, Status: 429, Header: http.Header{"Retry-After": {"0.05"}}, Times: 1}}, nil},
		{"an answer whose receipt is lost",
			[]fault.Fault{{Method: "POST", Path: send, After: true, Drop: true, Times: 2}}, nil},
		{"an answer whose receipt is an error",
			[]fault.Fault{{Method: "POST", Path: send, After: true, Status: 500, Times: 2}}, nil},
		{"connections that break", []fault.Fault{{Path: "/**", Drop: true, Times: 6}}, nil},
		{"pages", nil, func(w *world) { w.fake.PageSize = 1 }},
	} {
		for _, follow := range []string{FollowStream, FollowPoll} {
			t.Run(test.name+", "+follow, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				if test.change != nil {
					test.change(w)
				}
				for _, f := range test.faults {
					w.fake.Faults.Add(f)
				}
				session := w.fake.NewSession()
				ids := w.fake.Call(session, "", echo(0), echo(1))
				start(t, w.newRunner(t, Spec{Sessions: []string{session}, Follow: follow, Poll: 10 * time.Millisecond}))
				w.wait(t, session, ids...)
				for n := 2; n < 6; n++ {
					w.fake.Break()
					ids = append(ids, w.fake.Call(session, "", echo(n))...)
				}
				for i, r := range w.wait(t, session, ids...) {
					if want := fmt.Sprintf(`echo {"n":%d}`, i); r.text != want || r.isError {
						t.Errorf("call %d got %+v", i, r)
					}
				}
				w.once(t, session, ids)
			})
		}
	}
}

// TestSilentStream has a stream stay open that brings nothing: what happens is found by listing.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Mute = true
	w.change = func(_ *Options, timing *timing) { timing.silence = 20 * time.Millisecond }
	session := w.fake.NewSession()
	first := w.fake.Call(session, "", echo(1))
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	w.wait(t, session, first...)
	second := w.fake.Call(session, "", echo(2))
	w.wait(t, session, second...)
	w.once(t, session, append(first, second...))
}

// once checks that each call was made once and answered once, and that the journal has it so.
func (w *world) once(t *testing.T, session string, ids []string) {
	t.Helper()
	for _, id := range ids {
		eventually(t, "sent", func() bool { return w.state(t, session, id) == StateSent })
	}
	counts := w.count(session)
	for _, id := range ids {
		if counts[id] != 1 {
			t.Errorf("the call %s was answered %d times", id, counts[id])
		}
	}
	if made := w.calls(); len(made) != len(ids) {
		t.Errorf("%d calls were made instead of %d: %v", len(made), len(ids), made)
	}
}

func TestDuplicatesAndDisorder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	first := w.fake.Call(session, "", echo(1))
	// The same event once more, and a result that comes before its call.
	w.fake.Emit(session, managedagents.Event{"type": typeCall, "id": first[0], "name": "echo", "input": object{"n": 1}})
	w.fake.Emit(session, managedagents.Event{"type": typeResult, "custom_tool_use_id": "sevt_early"})
	w.fake.Emit(session, managedagents.Event{"type": typeCall, "id": "sevt_early", "name": "echo",
		"input": object{"n": 9}})
	w.wait(t, session, first...)
	w.fake.Emit(session, managedagents.Event{"type": typeCall, "id": first[0], "name": "echo", "input": object{"n": 1}})
	last := w.fake.Call(session, "", echo(2))
	w.wait(t, session, last...)
	w.once(t, session, append(first, last...))
}

// TestOddEvents shows that events of which nothing can be made cost nothing but a line in the log.
func TestOddEvents(t *testing.T) {
	t.Parallel()
	for _, follow := range []string{FollowStream, FollowPoll} {
		t.Run(follow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			session := w.fake.NewSession()
			start(t, w.newRunner(t, Spec{Sessions: []string{session}, Follow: follow, Poll: 10 * time.Millisecond}))
			w.wait(t, session, w.fake.Call(session, "", echo(1))...)
			for _, e := range []managedagents.Event{
				{"type": typeCall}, {"type": typeCall, "name": "echo", "id": "../../x"},
				{"type": typeCall, "name": strings.Repeat("x", 1000)},
				{"type": typeResult}, {"type": typeIdle, "stop_reason": nil},
				{"type": typeInterrupt, "processed_at": nil},
				{"type": "agent.new_thing"},
				{"type": typeCall, "name": 7}, {"type": typeThreadTerminated}, {},
			} {
				w.fake.Emit(session, e)
			}
			w.wait(t, session, w.fake.Call(session, "", echo(2))...)
		})
	}
}

func TestMalformedInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	for _, input := range []any{"text", []any{1}, 7, object{"n": "x"}, object{"other": 1}} {
		got := w.wait(t, session, w.fake.Call(session, "", managedagents.Call{Tool: "echo", Input: input})...)
		if !got[0].isError || !strings.Contains(got[0].text, "the arguments of echo are not valid") {
			t.Errorf("%v got %+v", input, got[0])
		}
	}
	if made := w.calls(); len(made) != 0 {
		t.Errorf("calls were made: %v", made)
	}
}

// TestNumbersKeepTheirDigits checks that arguments are passed on as they were written.
func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	ids := w.fake.Call(session, "", managedagents.Call{Tool: "echo", Input: json.RawMessage(`{"n":9007199254740993}`)})
	if got := w.wait(t, session, ids...); got[0].text != `echo {"n":9007199254740993}` {
		t.Errorf("got %+v", got[0])
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*managedagents.Server, string){
		"deleted": (*managedagents.Server).Delete, "terminated": (*managedagents.Server).Terminate,
		"not found": func(s *managedagents.Server, _ string) {
			s.Faults.Add(fault.Fault{Path: "/v1/sessions/**", Status: 404})
			s.Break()
		},
		"gone": func(s *managedagents.Server, _ string) {
			s.Faults.Add(fault.Fault{Path: "/v1/sessions/**", Status: 410})
			s.Break()
		},
	} {
		for _, follow := range []string{FollowStream, FollowPoll} {
			t.Run(name+", "+follow, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				running := w.blocks()
				session := w.fake.NewSession()
				ids := w.fake.Call(session, "", echo(1))
				r := w.newRunner(t, Spec{Sessions: []string{session}, Follow: follow, Poll: 10 * time.Millisecond})
				done := make(chan error, 1)
				go func() { done <- r.Run(t.Context()) }()
				<-running
				end(w.fake, session)
				if err := <-done; err != nil {
					t.Errorf("Run returned %v", err)
				}
				if got := w.state(t, session, ids[0]); got != StateDropped {
					t.Errorf("the call is %s", got)
				}
			})
		}
	}
}

// TestSessionEndsBeforeTheAnswer has the API refuse an answer since the session is no more.
func TestSessionEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Mute = true
	session := w.fake.NewSession()
	w.fake.Faults.Add(fault.Fault{Method: "POST", Path: "/v1/sessions/*/events", Status: 404})
	r := w.newRunner(t, Spec{Sessions: []string{session}})
	ids := w.fake.Call(session, "", echo(1))
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	eventually(t, "dropped", func() bool { return w.state(t, session, ids[0]) == StateDropped })
	w.fake.Delete(session)
	w.fake.Break()
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]Spec{
		"a named session":      {Sessions: []string{"sesn_1"}},
		"sessions of an agent": {Agents: []string{managedagents.DefaultAgent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fake.Key = "another"
			err := w.newRunner(t, spec).Run(t.Context())
			var e *Error
			if !errors.Is(err, Auth) || !errors.As(err, &e) || e.Status != 401 ||
				!strings.Contains(err.Error(), "agent.key") {
				t.Errorf("Run returned %v", err)
			}
			if strings.Contains(err.Error(), key) {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
}

// TestKeyIsReplaced has the key change under a process that has read the old one.
func TestKeyIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	w := newWorld(t)
	session := w.fake.NewSession()
	r := w.newRunner(t, Spec{Sessions: []string{session}, Key: secret.Source{Command: []string{"cat", path}}})
	if old, err := r.client.key.Read(t.Context()); err != nil || old != "old" {
		t.Fatalf("%q, %v", old, err)
	}
	write(key)
	start(t, r)
	w.wait(t, session, w.fake.Call(session, "", echo(1))...)
}

// TestSessionOfAnotherWorkspace costs one session, not the run.
func TestSessionOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, other := w.fake.NewSession(), w.fake.NewSession()
	w.fake.Faults.Add(fault.Fault{Path: "/v1/sessions/" + other + "/**", Status: 403})
	ids := w.fake.Call(mine, "", echo(1))
	start(t, w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}}))
	w.wait(t, mine, ids...)
}

// TestNamedSessionIsForbidden ends the run: somebody has to change what it was told.
func TestNamedSessionIsForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	w.fake.Faults.Add(fault.Fault{Path: "/v1/sessions/" + session + "/**", Status: 403})
	if err := w.newRunner(t, Spec{Sessions: []string{session}}).Run(t.Context()); !errors.Is(err, Auth) {
		t.Errorf("Run returned %v", err)
	}
}

func TestNoSuchSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log testlog.Buffer
	w.change = func(o *Options, _ *timing) { o.Logger = log.Logger() }
	if err := w.newRunner(t, Spec{Sessions: []string{"sesn_misspelt"}}).Run(t.Context()); err != nil ||
		!strings.Contains(log.String(), "there is no such session") {
		t.Errorf("Run returned %v, and the log has %s", err, log.String())
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere <- r.Header.Get("Authorization")
	}))
	defer target.Close()
	w.fake.Faults.Add(fault.Fault{Status: 307, Header: http.Header{"Location": {target.URL}}})
	r := w.newRunner(t, Spec{Sessions: []string{"sesn_1"}})
	err := r.client.list(t.Context(), "sesn_1", time.Time{}, func(*event) {}, func(error) {})
	if !errors.Is(err, Unavailable) {
		t.Errorf("list returned %v", err)
	}
	select {
	case got := <-elsewhere:
		t.Errorf("the other server got %q", got)
	default:
	}
}

// TestEndlessList is a list whose pages have no end.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Faults.Add(fault.Fault{Status: 200, Body: `{"data":[],"next_page":"again"}`})
	r := w.newRunner(t, Spec{Sessions: []string{"sesn_1"}})
	if err := r.client.list(t.Context(), "sesn_1", time.Time{}, func(*event) {},
		func(error) {}); !errors.Is(err, Unavailable) {
		t.Errorf("list returned %v", err)
	}
}

// TestRest shows that a session in which nothing happens is left, and followed again when something does.
func TestRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(_ *Options, timing *timing) { timing.rest = 20 * time.Millisecond }
	session := w.fake.NewSession()
	if err := w.fake.Tell(session, "hello"); err != nil {
		t.Fatal(err)
	}
	r := w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}})
	start(t, r)
	rests := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, rests := r.resting[session]
		return rests && len(r.sessions) == 0
	}
	eventually(t, "at rest", rests)
	ids := w.fake.Call(session, "", echo(1))
	w.wait(t, session, ids...)
	w.once(t, session, ids)
	eventually(t, "at rest again", rests)
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	other := w.newRunner(t, Spec{Environments: []string{"env_other"}})
	found := 0
	if err := other.client.find(t.Context(), "", other.spec.Environments,
		func(listedSession) bool { found++; return true }); err != nil || found != 0 {
		t.Errorf("%d sessions were found, %v", found, err)
	}
	start(t, w.newRunner(t, Spec{Environments: []string{managedagents.Environment}}))
	w.wait(t, session, ids...)
}

// TestManySessions follows several at once.
func TestManySessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.PageSize = 3
	calls := map[string][]string{}
	for n := range 10 {
		session := w.fake.NewSession()
		calls[session] = w.fake.Call(session, "", echo(n), echo(n))
	}
	start(t, w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}}))
	for session, ids := range calls {
		w.wait(t, session, ids...)
	}
	if made := w.calls(); len(made) != 20 {
		t.Errorf("%d calls were made", len(made))
	}
}

// TestRateLimitHoldsForAll shows that no request is sent while the API wants none.
func TestRateLimitHoldsForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newRunner(t, Spec{Sessions: []string{"sesn_1"}})
	w.fake.Faults.Add(fault.Fault{Status: 429, Header: http.Header{"Retry-After": {"300"}}, Times: 1})
	list := func(ctx context.Context) error {
		return r.client.list(ctx, "sesn_1", time.Time{}, func(*event) {}, func(error) {})
	}
	if err := list(t.Context()); !errors.Is(err, RateLimited) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := list(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the next request returned %v", err)
	}
	if n := len(w.fake.Requests.All()); n > 1 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestSessionIsGoneForAMoment has the API deny for a moment that there is the session, in the middle of a call: the
// agent is told.
func TestSessionIsGoneForAMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := w.blocks()
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	start(t, w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}}))
	<-running
	w.fake.Faults.Add(fault.Fault{Path: "/v1/sessions/*/events/**", Status: 404, Times: 1})
	w.fake.Break()
	if got := w.wait(t, session, ids...); !got[0].isError || !strings.Contains(got[0].text, "in the middle") {
		t.Errorf("got %+v", got[0])
	}
	w.once(t, session, ids)
}

// TestFollowedAgainWhileACallRuns leaves a session with a call under way, and comes back to it: it is still one call.
func TestFollowedAgainWhileACallRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, release := make(chan struct{}, 10), make(chan struct{})
	w.does(func(context.Context, *abi.Request) (*abi.Response, error) {
		began <- struct{}{}
		<-release
		return text("done"), nil
	})
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	r := w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}})
	start(t, r)
	<-began
	w.fake.Faults.Add(fault.Fault{Path: "/v1/sessions/*/events/stream", Status: 403, Times: 1})
	w.fake.Break()
	eventually(t, "left", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, left := r.resting[session]
		return left
	})
	ids = append(ids, w.fake.Call(session, "", echo(2))...)
	<-began
	close(release)
	w.wait(t, session, ids...)
	w.once(t, session, ids)
}

// TestOneAgentIsGone shows that what is wrong with one agent keeps no session of another from being found.
func TestOneAgentIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("agent_id") == "agent_gone" {
			http.Error(rw, `{"type":"error","error":{"type":"not_found_error","message":"x"}}`, http.StatusNotFound)
			return
		}
		w.fake.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	start(t, w.newRunner(t, Spec{Agents: []string{"agent_gone", managedagents.DefaultAgent}}))
	w.wait(t, session, ids...)
}

// TestCrowd has more sessions with something to do than are followed at once: it is said once, and none is forgotten.
func TestCrowd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log testlog.Buffer
	w.change = func(o *Options, _ *timing) { o.Logger = log.Logger() }
	r := w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}})
	for n := range maxSessions {
		r.add(fmt.Sprint("sesn_other_", n), false)
	}
	w.fake.NewSession()
	for range 3 {
		if err := r.look(t.Context(), nil, maxFound); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "sessions have to wait"); n != 1 ||
		!strings.Contains(log.String(), "waiting=1") {
		t.Errorf("it is said %d times:\n%s", n, log.String())
	}
}
