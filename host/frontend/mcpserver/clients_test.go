package mcpserver

import (
	"context"
	"net/http"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/pipeline"
)

// TestClients: a session is listed with what its client said of itself and what it does, and ends when an operator
// ends it.
func TestClients(t *testing.T) {
	t.Parallel()
	began, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, offer(t, nil, "wait"), caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
		close(began)
		<-proceed
		return ok(text("done"))
	}), nil)
	h := s.Handler()
	id := openSession(t, h)
	answered := make(chan int, 1)
	go func() {
		r := post(withSessions, message(withSessions, 1, "tools/call", `{"name":"wait","arguments":{}}`), "Mcp-Session-Id", id)
		answered <- do(h, r).Code
	}()
	<-began
	one := onlyClient(t, s)
	if one.Name != "test" || one.Version != "1" || one.Protocol != withSessions || one.User != "" ||
		one.Address == "" || one.Opened.IsZero() || one.Used.IsZero() || !one.Here || one.Calls != 1 || one.Requests != 1 ||
		one.Streams != 0 {
		t.Errorf("in a call: %+v", one)
	}
	close(proceed)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("the call: %d", code)
	}
	if one := onlyClient(t, s); one.Calls != 1 || one.Requests != 0 {
		t.Errorf("after the call: %+v", one)
	}
	if one.ID == id {
		t.Error("the list has the ID, with which anybody could use the session")
	}
	if there, err := s.EndClient(t.Context(), one.ID); !there || err != nil {
		t.Errorf("end it: %v, %v", there, err)
	}
	if there, err := s.EndClient(t.Context(), one.ID); there || err != nil {
		t.Errorf("end it again: %v, %v", there, err)
	}
	if list, err := s.Clients(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("after its end: %v, %v", list, err)
	}
	gone := post(withSessions, message(withSessions, 2, "tools/list", `{}`), "Mcp-Session-Id", id)
	if w := do(h, gone); w.Code != http.StatusNotFound {
		t.Errorf("a request of the ended session: %d %s", w.Code, w.Body)
	}
}

func onlyClient(t *testing.T, s *Server) connection.Client {
	t.Helper()
	list, err := s.Clients(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

func TestClientOnStdio(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, nil, "wait"), nil, nil)
	connectStdio(t, s, withSessions, nil)
	testwait.Until(t, func() bool { return onlyClient(t, s).Name != "" }) // the SDK is connected in a goroutine of its own
	if one := onlyClient(t, s); one.ID != "" || one.Name == "" || one.Protocol != withSessions || one.Opened.IsZero() {
		t.Errorf("%+v", one)
	}
}

// TestClientsOfReplicas: every replica lists and ends the sessions of all.
func TestClientsOfReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, offer(t, nil, "wait"), nil, nil)
	a, b := f.replicas[0], f.replicas[1]
	id := openSession(t, a.Handler())
	if one := onlyClient(t, a.Server); !one.Here {
		t.Errorf("at its replica: %+v", one)
	}
	one := onlyClient(t, b.Server)
	if one.Here || one.Name != "test" || one.Protocol != withSessions || one.Address == "" || one.Opened.IsZero() ||
		one.Used.IsZero() {
		t.Errorf("at another replica: %+v", one)
	}
	if there, err := b.EndClient(t.Context(), one.ID); !there || err != nil {
		t.Errorf("end it: %v, %v", there, err)
	}
	r := post(withSessions, message(withSessions, 2, "tools/list", `{}`), "Mcp-Session-Id", id)
	if w := do(f.replicas[2].Handler(), r); w.Code != http.StatusNotFound {
		t.Errorf("a request of the ended session: %d %s", w.Code, w.Body)
	}
}
