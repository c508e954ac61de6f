package agent

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// replica is a store over the database at where, for one runner.
func replica(t *testing.T, where string) *store.Store {
	t.Helper()
	s, err := drivers.Open(t.Context(), where, &drivers.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestReplicas has several replicas share a database: each call is made once, and what one leaves when it dies another
// ends.
func TestReplicas(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	w := newWorld(t)
	session := w.fake.NewSession()
	call := managedagents.Call{Tool: "echo", Input: object{}}
	left := w.fake.Call(session, "", call, call, call)
	w.store = replica(t, where)
	for i, state := range []State{StateTaken, StateRunning, StateAnswered} {
		w.dies(t, session, left[i], "echo", state, &answer{Text: "from the journal"})
	}
	for range 2 {
		w.store = replica(t, where)
		start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	}
	got := w.wait(t, session, left...)
	if got[0].text != "echo {}" || !strings.Contains(got[1].text, "in the middle") ||
		got[2].text != "from the journal" {
		t.Errorf("got %+v", got)
	}
	ids := left
	for n := range 10 {
		ids = append(ids, w.fake.Call(session, "", echo(n), echo(n))...)
	}
	w.wait(t, session, ids...)
	for id, n := range w.count(session) {
		if n != 1 {
			t.Errorf("the call %s was answered %d times", id, n)
		}
	}
	if made := w.calls(); len(made) != 21 {
		t.Errorf("%d calls were made instead of 21", len(made))
	}
	list, err := Calls(t.Context(), w.store, true, 100)
	if err != nil || len(list) != 23 {
		t.Errorf("%d calls are listed, %v", len(list), err)
	}
}
