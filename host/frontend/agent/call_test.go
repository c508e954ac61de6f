package agent

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// blocks makes tools run until their call is cancelled, and returns a channel that gets each that has begun.
func (w *world) blocks() <-chan string {
	running := make(chan string, 100)
	w.does(func(ctx context.Context, r *abi.Request) (*abi.Response, error) {
		running <- r.Name
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return running
}

// state returns the state of a call in the journal, or "".
func (w *world) state(t *testing.T, session, id string) (state State) {
	t.Helper()
	list, err := Calls(context.WithoutCancel(t.Context()), w.store, true, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Session == session && c.Call == id {
			return c.State
		}
	}
	return ""
}

func (w *world) setPolicy(t *testing.T, rules string) {
	t.Helper()
	p, err := policy.Parse([]byte("version: 1\nrules:\n" + rules))
	if err != nil {
		t.Fatal(err)
	}
	w.governance.Policy = func() *policy.Policy { return p }
}

func (w *world) approvals(t *testing.T) *approval.Queue {
	t.Helper()
	approvals, err := approval.New(t.Context(), w.store, &approval.Options{Operators: true})
	if err != nil {
		t.Fatal(err)
	}
	w.governance.Approvals = approvals
	return approvals
}

// question waits for one that is asked.
func question(t *testing.T, approvals *approval.Queue) (q *approval.Question) {
	t.Helper()
	eventually(t, "asked", func() bool {
		list, err := approvals.Waiting(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			q = list[0]
		}
		return q != nil
	})
	return q
}

func TestUnknownTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(t, "  - {name: no looking, action: deny, tools: [look]}\n")
	unknown, denied := managedagents.Call{Tool: "no_such_tool", Input: object{}},
		managedagents.Call{Tool: "look", Input: object{}}
	for _, test := range []struct {
		name, unknown string
		call          managedagents.Call
		want          string
	}{
		{"an unknown one", UnknownRefuse, unknown, `There is no tool "no_such_tool"`},
		{"one that the policy denies", UnknownRefuse, denied, "no looking"},
		{"one that the policy denies, while others are left", UnknownLeave, denied, "no looking"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			session := w.fake.NewSession()
			start(t, w.newRunner(t, Spec{Sessions: []string{session}, Unknown: test.unknown}))
			if got := w.wait(t, session, w.fake.Call(session, "", test.call)...); !got[0].isError ||
				!strings.Contains(got[0].text, test.want) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
	t.Run("one that is left", func(t *testing.T) {
		t.Parallel()
		session := w.fake.NewSession()
		start(t, w.newRunner(t, Spec{Sessions: []string{session}, Unknown: UnknownLeave}))
		ids := w.fake.Call(session, "", unknown, echo(1))
		w.wait(t, session, ids[1])
		if w.count(session)[ids[0]] != 0 || w.state(t, session, ids[0]) != "" {
			t.Error("the unknown tool was answered or taken")
		}
	})
}

func TestParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var running, most atomic.Int32
	release := make(chan struct{})
	w.does(func(context.Context, *abi.Request) (*abi.Response, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-release
		return text("done"), nil
	})
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1), echo(2), echo(3), echo(4), echo(5), echo(6))
	start(t, w.newRunner(t, Spec{Sessions: []string{session}, Parallel: 3}))
	eventually(t, "three at once", func() bool { return running.Load() == 3 })
	close(release)
	w.wait(t, session, ids...)
	if most.Load() != 3 {
		t.Errorf("%d ran at once", most.Load())
	}
}

// TestApproval has one call wait for a person, which holds up no other, also where one runs at a time.
func TestApproval(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setPolicy(t, "  - {name: ask first, action: ask, tools: [put], frontends: [agent]}\n")
			approvals := w.approvals(t)
			session := w.fake.NewSession()
			ids := w.fake.Call(session, "", managedagents.Call{Tool: "put", Input: object{}}, echo(1), echo(2))
			start(t, w.newRunner(t, Spec{Sessions: []string{session}, Parallel: 1, User: "robot",
				Timeout: time.Minute}))
			q := question(t, approvals)
			w.wait(t, session, ids[1:]...)
			if got := w.state(t, session, ids[0]); got != StateTaken {
				t.Errorf("while it waits the call is %s", got)
			}
			if q.Caller.Frontend != pipeline.FrontendAgent || q.Caller.User != "robot" || q.Caller.Session != session {
				t.Errorf("the caller is %+v", q.Caller)
			}
			if err := approvals.Answer(t.Context(), q.ID,
				approval.Answer{Yes: yes, By: approval.Person{User: "boss", Operator: true}}); err != nil {
				t.Fatal(err)
			}
			got := w.wait(t, session, ids[0])
			if yes && got[0] != (result{text: "put {}"}) || !yes &&
				(!got[0].isError || !strings.Contains(got[0].text, "refused by boss")) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, follow := range []string{FollowStream, FollowPoll} {
		t.Run(follow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setPolicy(t, "  - {name: ask first, action: ask, tools: [put]}\n")
			approvals, running := w.approvals(t), w.blocks()
			session := w.fake.NewSession()
			ids := w.fake.Call(session, "", managedagents.Call{Tool: "put", Input: object{}}, echo(1))
			start(t, w.newRunner(t, Spec{Sessions: []string{session}, Follow: follow, Poll: 10 * time.Millisecond}))
			<-running
			question(t, approvals)
			w.fake.Interrupt(session)
			for _, id := range ids {
				eventually(t, "dropped", func() bool { return w.state(t, session, id) == StateDropped })
			}
			if list, err := approvals.Waiting(t.Context(), nil); err != nil || len(list) > 0 {
				t.Errorf("%d questions wait, %v", len(list), err)
			}
			w.does(nil)
			w.wait(t, session, w.fake.Call(session, "", echo(2))...)
			if counts := w.count(session); len(counts) != 1 {
				t.Errorf("calls that were interrupted have results: %v", counts)
			}
		})
	}
}

// TestThreadEnds drops the calls of a subagent that has ended, and no others.
func TestThreadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	began := make(chan struct{}, 2)
	w.does(func(ctx context.Context, _ *abi.Request) (*abi.Response, error) {
		began <- struct{}{}
		select {
		case <-release:
			return text("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	session := w.fake.NewSession()
	own, sub := w.fake.Call(session, "", echo(1)), w.fake.Call(session, "sthr_1", echo(2))
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	<-began
	<-began
	w.fake.Emit(session, managedagents.Event{"type": typeThreadTerminated, "session_thread_id": "sthr_1"})
	eventually(t, "dropped", func() bool { return w.state(t, session, sub[0]) == StateDropped })
	close(release)
	w.wait(t, session, own...)
}

// TestAnsweredElsewhere has another program answer a call that runs here.
func TestAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := w.blocks()
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	<-running
	other := w.newRunner(t, Spec{Sessions: []string{session}})
	if err := other.client.send(t.Context(), session, ids[0], &answer{Text: "from elsewhere"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dropped", func() bool { return w.state(t, session, ids[0]) == StateDropped })
	if n := w.count(session)[ids[0]]; n != 1 {
		t.Errorf("it was answered %d times", n)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.blocks()
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}, Timeout: 20 * time.Millisecond}))
	if got := w.wait(t, session, w.fake.Call(session, "", echo(1))...); !got[0].isError ||
		!strings.Contains(got[0].text, "did not respond within 20ms") {
		t.Errorf("got %+v", got[0])
	}
}

// asked is an Approvals, and a backend that asks it in the middle of a call.
type asked struct{ deadlines chan bool }

func (a *asked) Ask(ctx context.Context, _ *approval.Question, _ approval.Prompter) (string, error) {
	_, limited := ctx.Deadline()
	a.deadlines <- limited
	return "boss", nil
}

func (a *asked) Call(ctx context.Context, i *catalog.Invocation) (*abi.Response, error) {
	_, limited := ctx.Deadline()
	a.deadlines <- limited
	return text("done"), i.Ask(ctx, broker.Question{Text: "rm -r x"})
}

// TestTimeOfQuestions: a tool has the configured time, which stands still while the policy or the tool asks a person.
func TestTimeOfQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(t, "  - {name: ask first, action: ask, tools: [ask_people]}\n")
	people := &asked{make(chan bool, 3)}
	w.governance.Approvals = people
	m, err := manifest.Parse([]byte("name: asks\nversion: 1.0.0\ndescription: d\ntools:\n  - {name: ask_people, " +
		"description: d, inputSchema: {type: object}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.catalog.Put(catalog.Source{Name: "asks", Backend: people, Asks: true}, m); err != nil {
		t.Fatal(err)
	}
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}, Timeout: time.Hour}))
	w.wait(t, session, w.fake.Call(session, "", managedagents.Call{Tool: "ask_people", Input: object{}})...)
	for _, moment := range []struct {
		name    string
		limited bool
	}{{"asked by the policy", false}, {"running", true}, {"asked by the tool", false}} {
		if limited := <-people.deadlines; limited != moment.limited {
			t.Errorf("%s: there is a deadline: %v", moment.name, limited)
		}
	}
}

// callID matches the ID of a call at the end of an error of the host.
var callID = regexp.MustCompile(` \(call_[A-Z2-7]{26}\)$`)

func TestResults(t *testing.T) {
	t.Parallel()
	png := func(size int) abi.Content {
		return abi.Content{Type: abi.Image, MIMEType: "image/png", Data: make([]byte, size)}
	}
	for _, test := range []struct {
		name     string
		response *abi.Response
		err      error
		want     result
	}{
		{"a text", text("fine"), nil, result{text: "fine"}},
		{"a tool's failure", &abi.Response{IsError: true, Content: text("broken").Content}, nil,
			result{text: "broken", isError: true}},
		{"an error of the host", nil, errors.New("secret detail"),
			result{text: "internal error of the host: its log has the details", isError: true}},
		{"nothing", &abi.Response{}, nil, result{text: "(nothing)"}},
		{"blanks", text(" \n"), nil, result{text: "(nothing)"}},
		{"broken UTF-8", text("a\xffb"), nil, result{text: "a�b"}},
		{"too much", text(strings.Repeat("é", 60)), nil,
			result{text: strings.Repeat("é", 50) +
				"\n(cut off: these are the first 100 of 120 bytes. Ask for less, or for a part)"}},
		{"images", &abi.Response{Content: []abi.Content{png(10), png(20)}}, nil, result{images: 2}},
		{"an image with text", &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "see"}, png(10)}}, nil,
			result{text: "see", images: 1}},
		{"too many images", &abi.Response{Content: []abi.Content{png(1), png(1), png(1), png(1), png(1)}}, nil,
			result{text: "(image, image/png, 1 bytes, which are not shown)", images: 4}},
		{"too large an image", &abi.Response{Content: []abi.Content{png(maxImage + 1)}}, nil,
			result{text: "(image, image/png, 3700001 bytes, which are not shown)"}},
		{"an image of another type",
			&abi.Response{Content: []abi.Content{{Type: abi.Image, MIMEType: "image/tiff", Data: []byte{1}}}}, nil,
			result{text: "(image, image/tiff, 1 bytes, which are not shown)"}},
		{"a resource", &abi.Response{Content: []abi.Content{{Type: abi.Embedded,
			Resource: &abi.ResourceContents{URI: "x://y", Text: "inside"}}}}, nil,
			result{text: "(resource x://y)\ninside"}},
		{"a link", &abi.Response{Content: []abi.Content{{Type: abi.ResourceLink, Name: "n", URI: "x://y"}}}, nil,
			result{text: "(link to n: x://y)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.does(func(context.Context, *abi.Request) (*abi.Response, error) { return test.response, test.err })
			session := w.fake.NewSession()
			start(t, w.newRunner(t, Spec{Sessions: []string{session}, MaxResult: 100}))
			got := w.wait(t, session, w.fake.Call(session, "", managedagents.Call{Tool: "look", Input: object{}})...)[0]
			got.text = callID.ReplaceAllString(got.text, "")
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestAnswerIsRefused has the API refuse what a tool gave: the agent is told.
func TestAnswerIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fake.Faults.Add(fault.Fault{Method: http.MethodPost, Path: "/v1/sessions/*/events", Status: status,
				Times: 1})
			session := w.fake.NewSession()
			start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
			if got := w.wait(t, session, w.fake.Call(session, "", echo(1))...); !got[0].isError ||
				!strings.Contains(got[0].text, "cannot be delivered") {
				t.Errorf("got %+v", got[0])
			}
		})
	}
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.fake.Faults.Add(fault.Fault{Method: http.MethodPost, Path: "/v1/sessions/*/events", Status: 400, Times: 2})
		session := w.fake.NewSession()
		start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
		ids := w.fake.Call(session, "", echo(1))
		eventually(t, "dropped", func() bool { return w.state(t, session, ids[0]) == StateDropped })
	})
}

// TestTwoProcesses has two runners follow one session: only one of them makes each call.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	for range 2 {
		start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	}
	var ids []string
	for n := range 20 {
		ids = append(ids, w.fake.Call(session, "", echo(n), echo(n))...)
	}
	w.wait(t, session, ids...)
	w.once(t, session, ids)
}

// dies runs a call in a journal of another process, which has died when its call was in the state.
func (w *world) dies(t *testing.T, session, id, tool string, state State, a *answer) {
	t.Helper()
	j, err := openJournal(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer j.end()
	if _, err := j.claim(t.Context(), session, id, tool); err != nil {
		t.Fatal(err)
	}
	if _, err := j.move(t.Context(), session, id, state, a); err != nil {
		t.Fatal(err)
	}
}

// TestProcessDied starts where another process has ended, in every state.
func TestProcessDied(t *testing.T) {
	t.Parallel()
	stored := &answer{Text: "from the journal", Images: []image{{"image/png", []byte{1, 2}}}}
	for _, test := range []struct {
		name, tool string
		state      State
		answer     *answer
		want       result
		made, lost int
	}{
		{"nothing had run", "echo", StateTaken, nil, result{text: "echo {}"}, 1, 0},
		{"in the middle", "echo", StateRunning, nil,
			result{isError: true, text: "hako stopped in the middle of this call"}, 0, 1},
		{"in the middle of what only reads", "look", StateRunning, nil, result{text: "look {}"}, 1, 0},
		{"in the middle of what may be repeated", "put", StateRunning, nil, result{text: "put {}"}, 1, 0},
		{"in the middle of what is no more", "gone", StateRunning, nil,
			result{isError: true, text: "hako stopped in the middle of this call"}, 0, 1},
		{"before the answer was sent", "echo", StateAnswered, stored, result{text: "from the journal", images: 1}, 0,
			0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			lost := 0
			w.change = func(o *Options, _ *timing) {
				o.Lost = func(caller pipeline.Caller, tool string) {
					if lost++; tool != test.tool || caller.Frontend != pipeline.FrontendAgent ||
						caller.RequestID == "" {
						t.Errorf("lost is %s by %+v", tool, caller)
					}
				}
			}
			session := w.fake.NewSession()
			ids := w.fake.Call(session, "", managedagents.Call{Tool: test.tool, Input: object{}})
			w.dies(t, session, ids[0], test.tool, test.state, test.answer)
			stop := start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
			got := w.wait(t, session, ids...)[0]
			if !strings.HasPrefix(got.text, test.want.text) || got.isError != test.want.isError ||
				got.images != test.want.images {
				t.Errorf("got %+v", got)
			}
			eventually(t, "sent", func() bool { return w.state(t, session, ids[0]) == StateSent })
			if err := stop(); err != nil {
				t.Error(err)
			}
			if made := w.calls(); len(made) != test.made || lost != test.lost {
				t.Errorf("%v were made, %d are lost", made, lost)
			}
		})
	}
}

// TestOwnerLives leaves a call to the process that has it, and takes it when that process ends.
func TestOwnerLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	j, err := openJournal(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := j.claim(t.Context(), session, ids[0], "echo"); err != nil {
		t.Fatal(err)
	}
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	other := w.fake.Call(session, "", echo(2))
	eventually(t, "sent", func() bool { return w.state(t, session, other[0]) == StateSent })
	if list, err := Calls(t.Context(), w.store, false, 10); err != nil || len(list) != 1 || !list[0].Alive ||
		list[0].Tool != "echo" {
		t.Errorf("%+v, %v", list, err)
	}
	j.end()
	w.wait(t, session, ids...)
}

// TestDrain ends while one tool is about to answer, another does not come to an end, and a person is asked.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(t, "  - {name: ask first, action: ask, tools: [put]}\n")
	approvals := w.approvals(t)
	began, release, over := make(chan string, 3), make(chan struct{}), make(chan time.Time)
	w.does(func(ctx context.Context, r *abi.Request) (*abi.Response, error) {
		began <- r.Name
		if r.Name == "look" {
			<-release
			return text("just in time"), nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	session := w.fake.NewSession()
	call := func(tool string) managedagents.Call { return managedagents.Call{Tool: tool, Input: object{}} }
	ids := w.fake.Call(session, "", call("look"), call("echo"), call("put"))
	w.change = func(o *Options, _ *timing) { o.Grace = func() time.Duration { return time.Hour } }
	r := w.newRunner(t, Spec{Sessions: []string{session}})
	r.after = func(grace time.Duration) <-chan time.Time {
		if grace != time.Hour {
			t.Errorf("running tools have %v", grace)
		}
		return over
	}
	stop := start(t, r)
	<-began
	<-began
	first := question(t, approvals)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	eventually(t, "withdrawn", func() bool {
		outcome, _, err := approvals.Outcome(t.Context(), first.ID)
		return err == nil && outcome == approval.Withdrawn
	})
	late := w.fake.Call(session, "", call("look"))
	close(release)
	if got := w.wait(t, session, ids[0]); got[0].text != "just in time" {
		t.Errorf("got %+v", got[0])
	}
	eventually(t, "sent", func() bool { return w.state(t, session, ids[0]) == StateSent })
	close(over)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for id, want := range map[string]State{ids[0]: StateSent, ids[1]: StateRunning, ids[2]: StateTaken, late[0]: ""} {
		if got := w.state(t, session, id); got != want {
			t.Errorf("the call %s is %q, want %q", id, got, want)
		}
	}
	w.does(nil)
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	q := question(t, approvals)
	if err := approvals.Answer(t.Context(), q.ID, approval.Answer{Yes: true, By: approval.Person{Operator: true}}); err != nil {
		t.Fatal(err)
	}
	got := w.wait(t, session, ids[1], ids[2], late[0])
	if !got[0].isError || !strings.Contains(got[0].text, "in the middle") || got[1].text != "put {}" ||
		got[2].text != "look {}" {
		t.Errorf("got %+v", got)
	}
}

// TestStoreFails takes no call that cannot be written down, and goes on when it can.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exec := func(statement string) {
		t.Helper()
		if err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), statement)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	var log testlog.Buffer
	w.change = func(o *Options, _ *timing) { o.Logger = log.Logger() }
	session := w.fake.NewSession()
	r := w.newRunner(t, Spec{Sessions: []string{session}})
	exec("ALTER TABLE agent_call RENAME TO elsewhere")
	start(t, r)
	ids := w.fake.Call(session, "", echo(1))
	eventually(t, "reported", func() bool { return strings.Contains(log.String(), "a call could not be claimed") })
	if made := w.calls(); len(made) != 0 {
		t.Errorf("%v were made", made)
	}
	exec("ALTER TABLE elsewhere RENAME TO agent_call")
	w.wait(t, session, ids...)
	w.once(t, session, ids)
}

// TestNothingLeaks checks that the log has neither the key nor what passes between agents and tools.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log testlog.Buffer
	w.change = func(o *Options, _ *timing) { o.Logger = log.Logger() }
	w.does(func(context.Context, *abi.Request) (*abi.Response, error) { return text("hush-result"), nil })
	w.fake.Faults.Add(fault.Fault{Method: "POST", Path: "/v1/sessions/*/events", Status: 500,
		Body: `{"type":"error","error":{"type":"api_error","message":"hush-api"}}`, Times: 1})
	session := w.fake.NewSession()
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	w.wait(t, session, w.fake.Call(session, "", managedagents.Call{Tool: "look", Input: object{"x": "hush-input"}})...)
	if text := log.String(); strings.Contains(text, "hush") || strings.Contains(text, key) ||
		!strings.Contains(text, "could not be sent") {
		t.Error(text)
	}
}

// TestBegunAgain: a session that is followed again begins a call once more and then learns that it was answered. The
// call stays one whose answer was sent.
func TestBegunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newRunner(t, Spec{Agents: []string{managedagents.DefaultAgent}})
	var dropped atomic.Int32
	r.options.Observer = droppedCalls{r.options.Observer, &dropped}
	if _, err := r.journal.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer r.journal.end()
	if _, err := r.journal.claim(t.Context(), "s", "c", "echo"); err != nil {
		t.Fatal(err)
	}
	if changed, err := r.journal.move(t.Context(), "s", "c", StateSent, nil); err != nil || !changed {
		t.Fatal(changed, err)
	}
	c := &call{session: newSession(r, "s", false), event: &event{ID: "c"}, logger: r.logger}
	c.ctx, c.cancel = context.WithCancelCause(t.Context())
	c.cancel(errAnswered)
	if settled := r.run(c); !settled {
		t.Error("it is tried again")
	}
	if state := w.state(t, "s", "c"); state != StateSent {
		t.Errorf("it is %s", state)
	}
	if dropped.Load() != 0 {
		t.Error("it is counted as dropped")
	}
}

// droppedCalls counts the calls without a result.
type droppedCalls struct {
	Observer
	n *atomic.Int32
}

func (d droppedCalls) AgentCall(result string, _ time.Duration) {
	if result == ResultDropped {
		d.n.Add(1)
	}
}

func TestJournalForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j, err := openJournal(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []State{StateTaken, StateSent, StateDropped} {
		if _, err := j.claim(t.Context(), "s", string(state), "echo"); err != nil {
			t.Fatal(err)
		}
		if _, err := j.move(t.Context(), "s", string(state), state, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.exec(t.Context(), "UPDATE agent_call SET changed = $1",
		time.Now().Add(-retention-time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	if err := j.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := Calls(t.Context(), w.store, true, 10)
	if err != nil || !slices.ContainsFunc(list,
		func(c Status) bool { return c.Call == string(StateTaken) }) || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestReceiptIsLost has an answer arrive without a receipt, and no event tell of it: the repetition is refused, which
// is no failure.
func TestReceiptIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Mute = true
	w.fake.Faults.Add(fault.Fault{Method: http.MethodPost, Path: "/v1/sessions/*/events", After: true,
		Drop: true, Times: 1})
	session := w.fake.NewSession()
	ids := w.fake.Call(session, "", echo(1))
	start(t, w.newRunner(t, Spec{Sessions: []string{session}}))
	w.once(t, session, ids)
}
