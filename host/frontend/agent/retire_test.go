package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/pdk/abi"
)

// TestRetire has another runner take over while a tool runs and a person is asked: the tool ends where it began, and
// the person is asked by the other one.
func TestRetire(t *testing.T) {
	t.Parallel()
	for _, follow := range []string{FollowStream, FollowPoll} {
		t.Run(follow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setPolicy(t, "  - {name: ask first, action: ask, tools: [put]}\n")
			approvals := w.approvals(t)
			began, release := make(chan struct{}, 10), make(chan struct{})
			w.does(func(_ context.Context, r *abi.Request) (*abi.Response, error) {
				if strings.Contains(string(r.Arguments), "1") {
					began <- struct{}{}
					<-release
				}
				return text(r.Name + " " + string(r.Arguments)), nil
			})
			session := w.fake.NewSession()
			ids := w.fake.Call(session, "", echo(1), managedagents.Call{Tool: "put", Input: object{}})
			spec := Spec{Agents: []string{managedagents.DefaultAgent}, Follow: follow, Poll: 10 * time.Millisecond}
			old := w.newRunner(t, spec)
			done := make(chan error, 1)
			go func() { done <- old.Run(context.WithoutCancel(t.Context())) }()
			<-began
			first := question(t, approvals)
			start(t, w.newRunner(t, spec))
			old.Retire()
			eventually(t, "withdrawn", func() bool {
				outcome, _, err := approvals.Outcome(t.Context(), first.ID)
				return err == nil && outcome == approval.Withdrawn
			})
			again := question(t, approvals)
			if err := approvals.Answer(t.Context(), again.ID,
				approval.Answer{Yes: true, By: approval.Person{Operator: true}}); err != nil {
				t.Fatal(err)
			}
			w.wait(t, session, ids[1])
			ids = append(ids, w.fake.Call(session, "", echo(2))...)
			w.wait(t, session, ids[2])
			select {
			case err := <-done:
				t.Errorf("with a tool that runs, Run returned %v", err)
			default:
			}
			close(release)
			if got := w.wait(t, session, ids[0]); got[0].isError {
				t.Errorf("got %+v", got[0])
			}
			if err := <-done; err != nil {
				t.Errorf("Run returned %v", err)
			}
			w.once(t, session, ids)
		})
	}
}

// TestRetiredSeesInterrupts ends a tool that was interrupted after another runner was to take over, and takes no call
// meanwhile.
func TestRetiredSeesInterrupts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := w.blocks()
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	old := w.newRunner(t, Spec{Sessions: []string{session}})
	done := make(chan error, 1)
	go func() { done <- old.Run(context.WithoutCancel(t.Context())) }()
	<-running
	old.Retire()
	next := w.fake.Call(session, "", echo(2))
	w.fake.Interrupt(session)
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if got := w.state(t, session, ids[0]); got != StateDropped {
		t.Errorf("the call is %s", got)
	}
	if got := w.state(t, session, next[0]); got != "" {
		t.Errorf("the call after it is %s", got)
	}
}

// TestRetireAtRest ends a run at once that has nothing to do, whatever it waits for.
func TestRetireAtRest(t *testing.T) {
	t.Parallel()
	for _, follow := range []string{FollowStream, FollowPoll} {
		t.Run(follow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.change = func(_ *Options, timing *timing) { timing.discover = time.Hour }
			session := w.fake.NewSession()
			ids := w.fake.Call(session, "", echo(1))
			r := w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}, Follow: follow, Poll: time.Hour})
			done := make(chan error, 1)
			go func() { done <- r.Run(context.WithoutCancel(t.Context())) }()
			w.wait(t, session, ids...)
			r.Retire()
			if err := <-done; err != nil {
				t.Errorf("Run returned %v", err)
			}
			w.once(t, session, ids)
		})
	}
}

// TestOldSessionsAreNotInTheWay has more sessions in which nothing happens than are followed at once.
func TestOldSessionsAreNotInTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(_ *Options, timing *timing) { timing.rest = time.Hour }
	waits := w.fake.NewSession()
	ids := w.fake.Call(waits, "", echo(1))
	w.fake.Age(waits, 2*time.Hour)
	for n := range 2 * maxSessions {
		session := w.fake.NewSession()
		if n%2 == 0 { // in the others nothing has ever happened
			if err := w.fake.Tell(session, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		w.fake.Age(session, 2*time.Hour)
	}
	start(t, w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}}))
	w.wait(t, waits, ids...)
}
