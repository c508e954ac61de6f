package console_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// events is a stream of events that is being read.
type events struct {
	t      testing.TB
	body   io.Closer
	lines  *bufio.Scanner
	status int
}

// serve serves the world over HTTP until the test ends.
func (w *world) serve() *httptest.Server {
	server := httptest.NewServer(w.handler)
	w.t.Cleanup(server.Close)
	return server
}

// watch opens a stream.
func (b *browser) watch(server *httptest.Server) *events {
	b.t.Helper()
	r := b.request("GET", "calls", nil)
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", strings.TrimPrefix(server.URL, "http://")
	response, err := server.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	e := &events{b.t, response.Body, bufio.NewScanner(response.Body), response.StatusCode}
	if e.status == http.StatusOK {
		if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
			b.t.Errorf("Content-Type %q", kind)
		}
		e.expect("hello")
	}
	return e
}

// expect returns the data of the next event, which must have the name. Comments are passed over.
func (e *events) expect(name string) string {
	e.t.Helper()
	got, data, ok := e.next()
	if !ok || got != name {
		e.t.Fatalf("event %q with %s, want %s: %v", got, data, name, e.lines.Err())
	}
	return data
}

// next returns the next event. ok is false at the end of the stream.
func (e *events) next() (name, data string, ok bool) {
	for e.lines.Scan() {
		if text, ok := strings.CutPrefix(e.lines.Text(), "event: "); ok {
			name = text
		}
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok {
			return name, data, true
		}
	}
	return "", "", false
}

// until passes over events until the one with the name and the data.
func (e *events) until(name, data string) {
	e.t.Helper()
	for {
		switch gotName, got, ok := e.next(); {
		case !ok:
			e.t.Fatalf("the stream is over, want %s %s: %v", name, data, e.lines.Err())
		case gotName == name && got == data:
			return
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "echo"})
	b := w.as(console.Viewer)
	e := b.watch(w.serve())
	w.as(console.Admin).post("tools/echo/call", `{}`)
	e.expect("started")
	data := e.expect("call")
	for _, want := range []string{`"tool":"echo"`, `"plugin":"tools"`, `"frontend":"console"`, `"user":"admin"`, `"outcome":"ok"`, `"failed":false`, `"id":"call_`} {
		if !strings.Contains(data, want) {
			t.Errorf("%s, want %s", data, want)
		}
	}
	b.post("logout", struct{}{})
	if data := e.expect("end"); data != `{"reason":"logout"}` {
		t.Errorf("end: %s", data)
	}
	if e.lines.Scan() && e.lines.Text() != "" {
		t.Errorf("after the end: %q", e.lines.Text())
	}
}

// TestManyCalls: who gets more than is shown is told how much was left out, and the calls do not wait.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	e := w.as(console.Viewer).watch(w.serve())
	for i := range 10_000 {
		w.traffic.CallEnded(ended(fmt.Sprint("tool", i%7), pipeline.OK, time.Millisecond))
	}
	shown, dropped := 0, 0
	for shown+dropped < 10_000 && e.lines.Scan() {
		count := 0
		if e.lines.Text() == "event: call" {
			shown++
		} else if _, err := fmt.Sscanf(e.lines.Text(), `data: {"count":%d}`, &count); err == nil {
			dropped += count
		}
	}
	if shown+dropped != 10_000 || shown < console.StreamQueue {
		t.Errorf("%d were shown and %d dropped of 10000", shown, dropped)
	}
}

// TestSlowReader: one who does not read holds nobody up, and takes no memory.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	server := w.serve()
	b := w.as(console.Viewer)
	r := b.request("GET", "calls", nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	other := w.as(console.Admin).watch(server)
	huge := strings.Repeat("x", 32<<10)
	for range 20_000 {
		w.traffic.CallEnded(ended(huge, pipeline.OK, time.Millisecond))
	}
	other.expect("call")
}

func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	server := w.serve()
	b := w.as(console.Viewer)
	for range console.MaxStreamsPerPerson {
		b.watch(server)
	}
	if got := b.get("calls"); got.status != http.StatusTooManyRequests ||
		!strings.Contains(got.body, "Too many pages of the console are open: 8 by one person") {
		t.Errorf("one more: %d %s", got.status, got.body)
	}
	if e := w.as(console.Admin).watch(server); e.status != http.StatusOK {
		t.Errorf("somebody else: %d", e.status)
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	e := w.as(console.Viewer).watch(w.serve())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if data := e.expect("end"); data != `{"reason":"shutdown"}` {
		t.Errorf("end: %s", data)
	}
}

// TestWatching: a question reaches people as soon as somebody who may answer watches, and who watches is told of
// changes.
func TestWatching(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "danger"})
	server := w.serve()
	viewer := w.as(console.Viewer).watch(server)
	look := w.Look(w.browser().request("GET", "overview", nil))
	look()
	ask := func() error {
		_, err := w.approvals.Ask(t.Context(), &approval.Question{Caller: approval.Caller{User: "aki"}, Tool: "danger"},
			approval.Prompter{By: approval.Person{User: "aki"}})
		return err
	}
	if err := ask(); !errors.Is(err, approval.ErrUnreachable) {
		t.Errorf("with a viewer: %v", err)
	}
	watching := w.as(console.Approver)
	approver := watching.watch(server)
	look()
	answered := make(chan error, 1)
	go func() { answered <- ask() }()
	if !testwait.Until(t, func() bool { return len(watching.questions()) > 0 }) {
		t.Fatal("the question does not wait")
	}
	look()
	for _, e := range []*events{viewer, approver} {
		e.until("approvals", `{"waiting":1}`)
	}
	watching.post("approvals/"+watching.questions()[0].ID, map[string]string{"answer": "yes"})
	if err := <-answered; err != nil {
		t.Errorf("the answer: %v", err)
	}
	w.offer("more", echo, manifest.Tool{Name: "more"})
	look()
	for _, e := range []*events{viewer, approver} {
		e.until("approvals", `{"waiting":0}`)
		e.until("plugins", `{}`)
	}
	watching.post("logout", struct{}{})
	approver.expect("end")
	if !testwait.Until(t, func() bool { return w.Streams() == 1 }) {
		t.Fatal("the stream does not end")
	}
	look()
	if err := ask(); !errors.Is(err, approval.ErrUnreachable) {
		t.Errorf("when nobody watches any more: %v", err)
	}
}
