package transport

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/memorytest"
)

// TestTags: requests to a client, and what withdraws them, name the replica that waits; other messages stay as they
// are.
func TestTags(t *testing.T) {
	t.Parallel()
	const replica = "0123456789abcdef"
	for sent, want := range map[string]string{
		`{"jsonrpc":"2.0","id":12,"method":"elicitation/create","params":{}}`: `{"jsonrpc":"2.0","id":"0123456789abcdef-12",` +
			`"method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12}}`: `{"jsonrpc":"2.0",` +
			`"method":"notifications/cancelled","params":{"requestId":"0123456789abcdef-12"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`: "",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`:  "",
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":1}}`:    "",
		`{"jsonrpc":"2.0","id":"x","method":"y"}`:                                         "",
	} {
		message, err := jsonrpc.DecodeMessage([]byte(sent))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		c := NewConn("session", replica)
		if err := c.Write(WithStream(t.Context(), NewEvents(w, 1)), message); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = sent
		}
		if got := w.Body.String(); got != "event: message\ndata: "+want+"\n\n" {
			t.Errorf("got %s", got)
		}
	}
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","result":{"id":"fedcba9876543210-1"},"id":"0123456789abcdef-12"}`: replica,
		`{"jsonrpc":"2.0","id":"0123456789abcdef-12","error":{"code":1,"message":"no"}}`:    replica,
		`{"jsonrpc":"2.0","id":"0123456789abcdef-x","result":{}}`:                           "",
		`{"jsonrpc":"2.0","id":"0123456789abcdef--1","result":{}}`:                          "",
		`{"jsonrpc":"2.0","id":12,"result":{}}`:                                             "",
	} {
		message, err := jsonrpc.DecodeMessage([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, bare, ok := Untag(message.(*jsonrpc.Response))
		if got != want || ok != (want != "") || ok && fmt.Sprint(bare.ID.Raw()) != "12" {
			t.Errorf("%s: %q, %+v", body, got, bare)
		}
	}
}

// TestUndeliverable: what a client cannot receive does not end its connection: the SDK recognises the error.
func TestUndeliverable(t *testing.T) {
	t.Parallel()
	c := NewConn("session", "")
	notification := &jsonrpc.Request{Method: "notifications/progress"}
	body := NewJSON(httptest.NewRecorder())
	answered := NewEvents(httptest.NewRecorder(), 1)
	if err := answered.Answer(200, func(dst []byte) []byte { return append(dst, "{}"...) }); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"no stream":       c.Write(t.Context(), notification),
		"a JSON body":     c.Write(WithStream(t.Context(), body), notification),
		"an ended stream": c.Write(WithStream(t.Context(), answered), notification),
		"nobody's answer": c.Write(t.Context(), &jsonrpc.Response{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot receive") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDuplicatesLeaveNothing: a batch with the ID of a request in flight is refused whole.
func TestDuplicatesLeaveNothing(t *testing.T) {
	t.Parallel()
	c := NewConn("session", "")
	request := func(id string) *jsonrpc.Request {
		made, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		return &jsonrpc.Request{ID: made, Method: "ping"}
	}
	stream := NewEvents(httptest.NewRecorder(), 1)
	if c.Expect(stream, request("a")) != nil {
		t.Fatal("a is in flight already")
	}
	if duplicate := c.Expect(stream, request("b"), request("a")); duplicate == nil || duplicate.ID != request("a").ID {
		t.Errorf("duplicate: %+v", duplicate)
	}
	if c.Expect(stream, request("b")) != nil {
		t.Error("b is in flight although its batch was refused")
	}
}

// TestAnsweredRequestIsFree: a session that waits for its next request does not keep the last one.
func TestAnsweredRequestIsFree(t *testing.T) {
	t.Parallel()
	var tracker memorytest.Tracker
	c := NewConn("session", "")
	session, err := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil).Connect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	send := func(message string) {
		t.Helper()
		decoded, err := DecodeMessage([]byte(message))
		if err != nil {
			t.Fatal(err)
		}
		request := decoded.(*jsonrpc.Request)
		tracker.Bytes("params of "+request.Method, request.Params)
		w := httptest.NewRecorder()
		stream := NewJSON(w)
		c.Expect(stream, request)
		c.Deliver(request)
		<-stream.Done()
		if !strings.Contains(w.Body.String(), `"result"`) {
			t.Errorf("%s: %s", request.Method, w.Body)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 1<<20) + `"}}}`)
	tracker.Check(t)
	runtime.KeepAlive(session)
}
