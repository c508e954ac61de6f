package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/pdk/abi"
)

// fleet are replicas over one store, and a proxy before them that sends each request to the next one.
type fleet struct {
	t        *testing.T
	replicas []*replica
	url      string
	next     atomic.Int64
}

type replica struct {
	*Server
	store *store.Store
	http  *httptest.Server
	url   string
	dead  atomic.Bool
}

// newFleet starts three replicas. Each gets a caller of its own.
func newFleet(t *testing.T, offered *catalog.Catalog, calls func(replica int) Pipeline, change func(*Options)) *fleet {
	t.Helper()
	return newFleetOf(t, 3, func(i int, _ *store.Store, o *Options) (*catalog.Catalog, Pipeline) {
		if change != nil {
			change(o)
		}
		if calls == nil {
			return offered, nil
		}
		return offered, calls(i)
	})
}

// build makes what a replica offers and its caller, which may be nil, and changes its options.
type build func(replica int, s *store.Store, o *Options) (*catalog.Catalog, Pipeline)

// newFleetOf starts n replicas.
func newFleetOf(t *testing.T, n int, build build) *fleet {
	t.Helper()
	f, database := &fleet{t: t}, postgrestest.Start(t)
	for i := range n {
		f.add(database, build, i)
	}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1, Transport: ownConnections(),
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := url.Parse(f.pick().url)
			r.SetURL(to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A replica answers before the proxy has seen the end of the request: golang/go#40747.
		_ = http.NewResponseController(w).EnableFullDuplex()
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	f.url = proxy.URL + Path
	return f
}

func (f *fleet) add(database string, build build, number int) {
	f.t.Helper()
	s, err := drivers.Open(f.t.Context(), database, &drivers.Options{Dir: f.t.TempDir()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close() })
	if err := s.Join(f.t.Context(), "test"); err != nil {
		f.t.Fatal(err)
	}
	o := new(Options)
	if o.Sessions, err = sessionstore.New(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
	offered, caller := build(number, s, o)
	r := &replica{Server: newServer(f.t, offered, caller, o), store: s}
	r.http = httptest.NewServer(r.Handler())
	r.url = r.http.URL
	f.t.Cleanup(func() { r.die() })
	f.replicas = append(f.replicas, r)
}

// pick is the next one that lives.
func (f *fleet) pick() *replica {
	for {
		if r := f.replicas[int(f.next.Add(1))%len(f.replicas)]; !r.dead.Load() {
			return r
		}
	}
}

// die ends a replica, and all that is connected to it, without a word to the others but that it has left their list.
func (r *replica) die() {
	if r.dead.Swap(true) {
		return
	}
	r.http.CloseClientConnections()
	r.Close()
	r.http.Close()
	_ = r.store.Close()
}

// says names the replica that was called.
func says(i int) Pipeline {
	return caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		return ok(text("%d %s %s", i, call.Request.Name, call.Caller.Client))
	})
}

// send sends one message to one replica.
func (r *replica) send(t *testing.T, session, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	response := r.open(t, http.MethodPost, session, body, headers...)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(data)
}

func (r *replica) open(t *testing.T, method, session, body string, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", withSessions)
	if session != "" {
		request.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := web.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// initialize opens a session at a replica.
func (r *replica) initialize(t *testing.T, capabilities string, headers ...string) string {
	t.Helper()
	body := strings.Replace(initialize(withSessions), `"capabilities":{}`, `"capabilities":`+capabilities, 1)
	response, data := r.send(t, "", body, headers...)
	id := response.Header.Get("Mcp-Session-Id")
	if response.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("%d %s", response.StatusCode, data)
	}
	return id
}

func TestAnyReplica(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, offer(t, serveEverything, "look"), says, nil)
			session := connect(t, overHTTP(f.url), version, nil)
			defer session.Close()
			seen := map[string]bool{}
			for range 9 {
				seen[textOf(t, call(t, session, "look"))] = true
				if list, err := session.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 1 {
					t.Fatalf("%v %v", list, err)
				}
			}
			for i := range 3 {
				if !seen[fmt.Sprintf("%d look test", i)] {
					t.Errorf("seen %v", seen)
				}
			}
		})
	}
}

// A session outlives the replica that it was opened at.
func TestSessionOutlivesItsReplica(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "look"), says, nil)
	session := connect(t, overHTTP(f.url), withSessions, nil)
	defer session.Close()
	for i, r := range f.replicas[:2] {
		r.die()
		for range 3 {
			if got := textOf(t, call(t, session, "look")); got == fmt.Sprintf("%d look test", i) {
				t.Error("a dead replica answers")
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEndedEverywhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "look"), says, nil)
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	plain, list := message(withSessions, 1, "tools/call", `{"name":"look"}`),
		message(withSessions, 2, "tools/list", "{}")
	for _, r := range f.replicas {
		for _, body := range []string{plain, list} {
			if response, data := r.send(t, id, body); response.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", response.StatusCode, data)
			}
		}
	}
	if response := b.open(t, http.MethodDelete, id, ""); response.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", response.StatusCode)
	}
	for _, r := range f.replicas {
		for _, body := range []string{plain, list} {
			eventually(t, func() bool {
				response, _ := r.send(t, id, body)
				return response.StatusCode == http.StatusNotFound
			})
		}
	}
}

// eventually waits until another replica has heard of something.
func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	if !testwait.Until(t, happened) {
		t.Fatal("it does not happen")
	}
}

// A session that ends while it is restored here leaves nothing behind.
func TestEndWhileRestored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "look"), says, nil)
	a, b := f.replicas[0], f.replicas[1]
	session, err := b.replicas.find(t.Context(), a.initialize(t, "{}"), new(exchange))
	if err != nil || session == nil {
		t.Fatal(session, err)
	}
	b.sessions.drop(session)
	if err := b.replicas.restore(t.Context(), session); err == nil {
		t.Error("it was made")
	}
	eventually(t, func() bool {
		for range b.sdk.Sessions() {
			return false
		}
		return true
	})
}

// What nobody uses here is given up here, and found again in the store.
func TestIdleHere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "look"), says,
		func(o *Options) { o.Limits.SessionIdle = 50 * time.Millisecond })
	a := f.replicas[0]
	id := a.initialize(t, "{}")
	for range 3 {
		eventually(t, func() bool { return a.sessions.count() == 0 })
		if response, data := a.send(t, id, message(withSessions, 2, "tools/list", "{}")); response.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", response.StatusCode, data)
		}
	}
}

func TestLevelAndSubscriptionsGoAlong(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offerChanging(t, changing{}), nil, func(o *Options) { o.Extension = extension() })
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	for i, body := range []string{
		message(withSessions, 1, "logging/setLevel", `{"level":"debug"}`),
		message(withSessions, 2, "resources/subscribe", `{"uri":"probe://fixed"}`),
	} {
		if response, data := a.send(t, id, body); response.StatusCode != http.StatusOK ||
			strings.Contains(data, "error") {
			t.Fatalf("%d: %d %s", i, response.StatusCode, data)
		}
	}
	// The tool logs: without a level nothing would come.
	if _, data := b.send(t, id, message(withSessions, 3, "tools/call", `{"name":"test_tool_with_logging"}`)); !strings.Contains(data, "notifications/message") {
		t.Errorf("got %s", data)
	}
	if got := b.subscribedTo(id); !slices.Equal(got, []string{"probe://fixed"}) {
		t.Errorf("subscribed to %v", got)
	}
	if response, data := b.send(t, id, message(withSessions, 4, "resources/unsubscribe", `{"uri":"probe://fixed"}`)); response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", response.StatusCode, data)
	}
	eventually(t, func() bool { return len(a.subscribedTo(id)) == 0 })
}

func TestStrangersFindNoSession(t *testing.T) {
	t.Parallel()
	aki, akiHash := bearer.New()
	bo, boHash := bearer.New()
	opened := newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "a", Hash: akiHash, User: "aki"},
		{Name: "b", Hash: boHash, User: "bo"}}})
	f := newFleet(t, offer(t, serveEverything, "look"), says, func(o *Options) { o.Auth = opened })
	id := f.replicas[0].initialize(t, "{}", "Authorization", "Bearer "+aki)
	for _, r := range f.replicas {
		for _, body := range []string{message(withSessions, 1, "tools/call", `{"name":"look"}`), message(withSessions, 2, "tools/list", "{}")} {
			if response, data := r.send(t, id, body, "Authorization", "Bearer "+bo); response.StatusCode != http.StatusNotFound {
				t.Errorf("%d %s", response.StatusCode, data)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if response := r.open(t, method, id, "", "Authorization", "Bearer "+bo); response.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", method, response.StatusCode)
			}
		}
		if response, data := r.send(t, id, message(withSessions, 1, "tools/call", `{"name":"look"}`), "Authorization", "Bearer "+aki); response.StatusCode != http.StatusOK {
			t.Errorf("%d %s", response.StatusCode, data)
		}
	}
}

// A client hears at one replica of what a call changes at another.
func TestUpdatesFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, offerChanging(t, changing{}), nil, nil)
			a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
			id, told := "", make(chan string, 100)
			var stream *eventReader
			if version == withSessions {
				id = a.initialize(t, "{}")
				if response, data := a.send(t, id, message(version, 1, "resources/subscribe", `{"uri":"probe://fixed"}`)); response.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", response.StatusCode, data)
				}
				stream = readEvents(t, b.open(t, http.MethodGet, id, ""))
			} else {
				stream = readEvents(t, b.open(t, http.MethodPost, "", message(version, 1, "subscriptions/listen",
					`{"notifications":{"resourceSubscriptions":["probe://fixed"]}}`),
					"Mcp-Protocol-Version", version, "Mcp-Method", "subscriptions/listen"))
			}
			go func() {
				for data := stream.next(); data != ""; data = stream.next() {
					told <- data
				}
			}()
			headers := []string{"Mcp-Protocol-Version", version}
			if version != withSessions {
				headers = append(headers, "Mcp-Method", "tools/call", "Mcp-Name", "update")
			}
			eventually(t, func() bool {
				c.send(t, id, message(version, 2, "tools/call",
					`{"name":"update","arguments":{"text":"probe://fixed"}}`), headers...)
				for patience := time.After(200 * time.Millisecond); ; {
					select {
					case data := <-told:
						if strings.Contains(data, "notifications/resources/updated") &&
							strings.Contains(data, "probe://fixed") {
							return true
						}
					case <-patience:
						return false
					}
				}
			})
		})
	}
}

// A client is told of other tools at whichever replica its stream is.
func TestListsChangeEverywhere(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, offer(t, serveEverything, "look"), says, nil)
			changed := make(chan struct{}, 100)
			session := connect(t, overHTTP(f.url), version, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			defer session.Close()
			eventually(t, func() bool { // the stream may not stand yet
				for _, r := range f.replicas {
					r.ToolsChanged()
				}
				select {
				case <-changed:
					return true
				case <-time.After(200 * time.Millisecond):
					return false
				}
			})
		})
	}
}

// asks asks the person at the client, however long that takes.
func asks(int) Pipeline {
	return caller(func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		if call.Prompter.Ask == nil {
			return ok(text("nobody to ask"))
		}
		yes, err := call.Prompter.Ask(ctx, &approval.Question{Tool: "look"})
		return ok(text("%v %v", yes, err))
	})
}

// governs makes calls go where people can be asked.
type governs struct{ Pipeline }

func (governs) Described(_ pipeline.Caller, tool *catalog.Tool) *catalog.Tool { return tool }
func (governs) Visible(pipeline.Caller, *catalog.Tool) bool                   { return true }
func (governs) MayAsk(pipeline.Caller, *catalog.Tool) bool                    { return true }

func TestAnswersArriveAnywhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "look"), func(i int) Pipeline { return governs{asks(i)} }, nil)
	session := connect(t, overHTTP(f.url), withSessions, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	defer session.Close()
	for range 6 {
		result, err := session.CallTool(testwait.Context(t), &mcp.CallToolParams{Name: "look"})
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, result); got != "true <nil>" {
			t.Errorf("got %q", got)
		}
	}
}

// A question that needs no answer any more is taken back, although its ID is another one at the client.
func TestWithdrawnAnywhere(t *testing.T) {
	t.Parallel()
	asked, takenBack := make(chan struct{}), make(chan struct{})
	f := newFleet(t, offer(t, serveEverything, "look"), func(int) Pipeline {
		return governs{caller(func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			asking, cancel := context.WithCancel(ctx)
			go func() {
				<-asked
				cancel()
			}()
			_, err := call.Prompter.Ask(asking, &approval.Question{Tool: "look"})
			<-takenBack // the news comes on the call's stream
			return ok(text("%v", err))
		})}
	}, nil)
	session := connect(t, overHTTP(f.url), withSessions, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			select {
			case <-ctx.Done():
			case <-testwait.Context(t).Done():
				t.Error("it is not taken back")
			}
			close(takenBack)
			return &mcp.ElicitResult{Action: "cancel"}, nil
		},
	})
	defer session.Close()
	if got := textOf(t, call(t, session, "look")); got != context.Canceled.Error() {
		t.Errorf("got %q", got)
	}
}

// Answers in a batch, which MCP has in 2025-03-26, find their way too.
func TestBatchOfAnswers(t *testing.T) {
	t.Parallel()
	const version = "2025-03-26"
	f := newFleet(t, offer(t, serveEverything, "look"), func(i int) Pipeline { return governs{asks(i)} }, nil)
	a, b := f.replicas[0], f.replicas[1]
	response, _ := a.send(t, "", strings.Replace(initialize(version), `"capabilities":{}`,
		`"capabilities":{"elicitation":{}}`, 1), "Mcp-Protocol-Version", version)
	id := response.Header.Get("Mcp-Session-Id")
	b.send(t, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Protocol-Version", version)
	stream := readEvents(t, a.open(t, http.MethodPost, id, message(version, 7, "tools/call", `{"name":"look"}`),
		"Mcp-Protocol-Version", version))
	question := stream.next()
	number := regexp.MustCompile(`"id":("[^"]+")`).FindStringSubmatch(question)
	if number == nil {
		t.Fatalf("got %s", question)
	}
	answers := `[{"jsonrpc":"2.0","id":` + number[1] +
		`,"result":{"action":"accept","content":{"approve":true}}},{"jsonrpc":"2.0","id":5,"method":"ping"}]`
	if response, data := b.send(t, id, answers, "Mcp-Protocol-Version", version); response.StatusCode != http.StatusOK || !strings.Contains(data, `"id":5`) {
		t.Errorf("%d %s", response.StatusCode, data)
	}
	if got := stream.next(); !strings.Contains(got, "true") {
		t.Errorf("got %s", got)
	}
	for body, want := range map[string]int{
		`[{"jsonrpc":"2.0","id":` + number[1] + `,"result":{}}]`: http.StatusAccepted, `[]`: http.StatusBadRequest,
	} {
		if response, data := b.send(t, id, body, "Mcp-Protocol-Version", version); response.StatusCode != want {
			t.Errorf("%s: %d %s", body, response.StatusCode, data)
		}
	}
}

// Streams that go on elsewhere count as what they are.
func TestFollowersAreLimited(t *testing.T) {
	t.Parallel()
	entered, letGo := make(chan struct{}), make(chan struct{})
	f := newFleet(t, offer(t, serveEverything, "look"), blocked(entered, letGo),
		func(o *Options) { o.Limits.SessionsPerClient = 2 })
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	stream := readEvents(t, a.open(t, http.MethodPost, id,
		message(withSessions, 7, "tools/call", `{"name":"look","_meta":{"progressToken":1}}`)))
	stream.next()
	<-entered
	for range 2 {
		readEvents(t, b.open(t, http.MethodGet, id, "", "Last-Event-ID", stream.last))
	}
	if response := b.open(t, http.MethodGet, id, "", "Last-Event-ID", stream.last); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%d", response.StatusCode)
	}
	close(letGo)
}

// blocked waits in a call until it is let go or canceled.
func blocked(entered, letGo chan struct{}) func(int) Pipeline {
	return func(int) Pipeline {
		return governs{caller(func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			if call.Progress != nil {
				call.Progress(abi.Progress{Progress: 1, Message: "begun"})
			}
			entered <- struct{}{}
			select {
			case <-letGo:
				return ok(text("done"))
			case <-ctx.Done():
				entered <- struct{}{}
				return nil, ctx.Err()
			}
		})}
	}
}

func TestCanceledAnywhere(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{"plain": `{"name":"look"}`, "with progress": `{"name":"look","_meta":{"progressToken":1}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := make(chan struct{})
			f := newFleet(t, offer(t, serveEverything, "look"), blocked(entered, nil), nil)
			a, b := f.replicas[0], f.replicas[1]
			id := a.initialize(t, "{}")
			go func() {
				request, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost,
					a.url+Path, strings.NewReader(message(withSessions, 7, "tools/call", params)))
				for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": id} {
					request.Header.Set(name, value)
				}
				if response, err := web.Do(request); err == nil {
					_ = response.Body.Close()
				}
			}()
			<-entered
			cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
			if response, data := b.send(t, id, cancel); response.StatusCode != http.StatusAccepted {
				t.Fatalf("%d %s", response.StatusCode, data)
			}
			select {
			case <-entered:
			case <-testwait.Context(t).Done():
				t.Error("it goes on")
			}
		})
	}
}

// eventReader reads server-sent events.
type eventReader struct {
	t    *testing.T
	scan *bufio.Scanner
	last string // event ID
}

func readEvents(t *testing.T, response *http.Response) *eventReader {
	t.Helper()
	if response.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(response.Body)
		t.Fatalf("%d %s", response.StatusCode, data)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &eventReader{t: t, scan: bufio.NewScanner(response.Body)}
}

// next returns the data of the next event that has some, or empty at the end.
func (e *eventReader) next() string {
	for e.scan.Scan() {
		if id, ok := strings.CutPrefix(e.scan.Text(), "id: "); ok {
			e.last = id
		}
		if data, ok := strings.CutPrefix(e.scan.Text(), "data: "); ok && data != "" {
			return data
		}
	}
	return ""
}

// A stream that was cut off goes on at another replica: with what was missed, and with what comes.
func TestResume(t *testing.T) {
	t.Parallel()
	entered, letGo := make(chan struct{}), make(chan struct{})
	f := newFleet(t, offer(t, serveEverything, "look"), blocked(entered, letGo), nil)
	a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
	id := a.initialize(t, "{}")
	slow := message(withSessions, 7, "tools/call", `{"name":"look","_meta":{"progressToken":1}}`)
	cut := a.open(t, http.MethodPost, id, slow)
	stream := readEvents(t, cut)
	if got := stream.next(); !strings.Contains(got, `"message":"begun"`) {
		t.Fatalf("got %s", got)
	}
	<-entered
	_ = cut.Body.Close()
	first, _, _ := strings.Cut(stream.last, "_")
	again := readEvents(t, b.open(t, http.MethodGet, id, "", "Last-Event-ID", first+"_0"))
	if got := again.next(); !strings.Contains(got, `"message":"begun"`) || again.last != stream.last {
		t.Errorf("got %s, %s", again.last, got)
	}
	close(letGo)
	if got := again.next(); !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `"id":7`) {
		t.Errorf("got %s", got)
	}
	if got := again.next(); got != "" {
		t.Errorf("got %s after the answer", got)
	}
	for _, r := range []*replica{a, c} { // also when all is over
		late := readEvents(t, r.open(t, http.MethodGet, id, "", "Last-Event-ID", stream.last))
		if got := late.next(); !strings.Contains(got, `"text":"done"`) {
			t.Errorf("got %s", got)
		}
	}
	for _, bad := range []string{"nonsense", first + "_x", "unknown_1", "\xff_1"} {
		if response := c.open(t, http.MethodGet, id, "", "Last-Event-ID", bad); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, response.StatusCode)
		}
	}
}

// TestResumeAfterDuplicate: a second request with the ID of one in flight is refused and leaves the first one's stream as
// it is.
func TestResumeAfterDuplicate(t *testing.T) {
	t.Parallel()
	entered, letGo := make(chan struct{}), make(chan struct{})
	f := newFleet(t, offer(t, serveEverything, "look"), blocked(entered, letGo), nil)
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	slow := message(withSessions, 7, "tools/call", `{"name":"look","_meta":{"progressToken":1}}`)
	stream := readEvents(t, a.open(t, http.MethodPost, id, slow))
	stream.next()
	<-entered
	if response, data := a.send(t, id, slow); response.StatusCode != http.StatusBadRequest ||
		!strings.Contains(data, "duplicate in-flight request ID 7") {
		t.Errorf("the second: %d %s", response.StatusCode, data)
	}
	if n := f.count(t, "mcp_stream"); n != 1 {
		t.Errorf("%d streams are kept, want 1", n)
	}
	again := readEvents(t, b.open(t, http.MethodGet, id, "", "Last-Event-ID", stream.last))
	close(letGo)
	if got := again.next(); !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `"id":7`) {
		t.Errorf("the first, resumed: %q", got)
	}
}

// TestNegotiatedVersion: a session has the version that was negotiated, at every replica, whatever its client asked for.
func TestNegotiatedVersion(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, serveEverything, "x"), says, nil)
	a, b := f.replicas[0], f.replicas[1]
	for asked, negotiated := range map[string]string{
		"2099-01-01": withSessions, withoutSessions: withSessions, "1999-01-01": withSessions, "2025-03-26": "2025-03-26",
	} {
		response, data := a.send(t, "", initialize(asked))
		if !strings.Contains(data, `"protocolVersion":"`+negotiated+`"`) {
			t.Errorf("%s: initialize: %d %s", asked, response.StatusCode, data)
		}
		id := response.Header.Get("Mcp-Session-Id")
		for _, r := range []*replica{a, b} {
			response, data := r.send(t, id, message(negotiated, 1, "tools/list", `{}`), "Mcp-Protocol-Version", negotiated)
			if response.StatusCode != http.StatusOK || !strings.Contains(data, `"tools":[`) {
				t.Errorf("%s: tools/list: %d %s", asked, response.StatusCode, data)
			}
			if version := r.sessions.of(id).version; version != negotiated {
				t.Errorf("%s: the session has version %s", asked, version)
			}
		}
	}
}

// The answer to a call whose replica is no more is that nobody knows.
func TestResumeAfterDeath(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 2)
	f := newFleet(t, offer(t, serveEverything, "look"), blocked(entered, nil), nil)
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	stream := readEvents(t, a.open(t, http.MethodPost, id,
		message(withSessions, 7, "tools/call", `{"name":"look","_meta":{"progressToken":1}}`)))
	stream.next()
	<-entered
	_ = a.store.Close() // what it has to say at its end does not reach the store
	again := readEvents(t, b.open(t, http.MethodGet, id, "", "Last-Event-ID", stream.last))
	if got := again.next(); !strings.Contains(got, "it is unknown whether the request had an effect") ||
		!strings.Contains(got, `"id":7`) {
		t.Errorf("got %s", got)
	}
}

// A session's own stream that goes on elsewhere begins with hints at all that may have been missed.
func TestResumeHints(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offerChanging(t, changing{}), nil, nil)
	a, b := f.replicas[0], f.replicas[1]
	id := a.initialize(t, "{}")
	if response, data := a.send(t, id, message(withSessions, 1, "resources/subscribe", `{"uri":"probe://fixed"}`)); response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", response.StatusCode, data)
	}
	var got []string
	stream := readEvents(t, b.open(t, http.MethodGet, id, "", "Last-Event-ID", "_3"))
	for range 4 {
		got = append(got, stream.next())
	}
	if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "probe://fixed") }) ||
		!strings.Contains(got[0], "notifications/tools/list_changed") {
		t.Errorf("got %s", got)
	}
}

// subscribedTo are the subscriptions of a session at a replica.
func (r *replica) subscribedTo(id string) []string {
	_, sdk := r.sessions.connectionOf(r.sessions.of(id))
	return r.subscriptions.of(sdk)
}
