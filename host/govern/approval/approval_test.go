package approval_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/store/drivers"
)

func approvals(t *testing.T, dir string, options *approval.Options) *approval.Queue {
	t.Helper()
	s, err := drivers.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := approval.New(t.Context(), s, options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func question(arguments string) *approval.Question {
	return &approval.Question{
		Caller: approval.Caller{Frontend: "mcp-http", Tenant: "acme", User: "aki", Session: "s1"}, Tool: "shell_exec",
		Plugin:    "shell",
		Arguments: json.RawMessage(arguments), Rule: "ask before writing", Reason: manifest.Text{"en": "it writes", "ja": "書き込みます"}, Destructive: true,
	}
}

// always is a reaches function that is always true.
func always(*approval.Question) bool { return true }

var aki = approval.Person{Tenant: "acme", User: "aki"}

// saying is a frontend whose caller says yes or no.
func saying(yes bool) approval.Prompter {
	return approval.Prompter{By: aki, Ask: func(context.Context, *approval.Question) (bool, error) { return yes, nil }}
}

// silent is a frontend whose caller does not answer.
var silent = approval.Prompter{By: aki, Ask: func(ctx context.Context, _ *approval.Question) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}}

func TestAsk(t *testing.T) {
	t.Parallel()
	d := approvals(t, storetest.Where(t), nil)
	if by, err := d.Ask(t.Context(), question(`{"command":"ls"}`), saying(true)); err != nil || by != "aki" {
		t.Errorf("yes: %q, %v", by, err)
	}
	var refused *approval.RefusedError
	if _, err := d.Ask(t.Context(), question(`{"command":"ls"}`), saying(false)); !errors.As(err, &refused) ||
		refused.By != "aki" {
		t.Errorf("no, after a yes to the same call that counted once: %v", err)
	}
	if _, err := d.Ask(t.Context(), question(`{}`), approval.Prompter{By: aki}); !errors.Is(err, approval.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	failing := approval.Prompter{By: aki, Ask: func(context.Context, *approval.Question) (bool, error) {
		return false, errors.New("the client has no elicitation")
	}}
	if _, err := d.Ask(t.Context(), question(`{}`), failing); !errors.Is(err, approval.ErrUnreachable) ||
		!strings.Contains(err.Error(), "no elicitation") {
		t.Errorf("a frontend that cannot ask: %v", err)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	d := approvals(t, storetest.Where(t), &approval.Options{Timeout: time.Millisecond})
	q := question(`{}`)
	for range 20 { // frontend and approvals notice the timeout in either order
		if _, err := d.Ask(t.Context(), q, silent); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("no answer: %v", err)
		}
	}
	if _, err := d.Ask(t.Context(), q, silent); !errors.Is(err, approval.ErrExpired) {
		t.Errorf("no answer: %v", err)
	}
	if err := d.Answer(t.Context(), q.ID, approval.Answer{Yes: true, By: aki}); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("an answer after the time: %v", err)
	}
}

// TestOutdatedQuestion checks that a stored question of an earlier version, with one list of approvers, ends and does
// not disturb others.
func TestOutdatedQuestion(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]string{
		"one list of approvers": `{"id":"ID","caller":{"tenant":"acme","user":"aki"},"tool":"shell_exec","plugin":"shell","approvers":["aki","leads"]}`,
		"damaged":               `{"id":"ID","caller":`,
		"of another form":       `["ID"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := storetest.Where(t)
			d := approvals(t, dir, &approval.Options{Operators: true})
			asked := make(chan error, 1)
			q := question(`{}`)
			go func() {
				_, err := d.Ask(t.Context(), q, approval.Prompter{By: aki})
				asked <- err
			}()
			var id string
			for id == "" {
				if list, err := d.Waiting(t.Context(), nil); err != nil {
					t.Fatal(err)
				} else if len(list) == 1 {
					id = list[0].ID
				}
			}
			s, err := drivers.Open(t.Context(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if err := s.Update(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), `UPDATE approval SET question = $1`,
					strings.Replace(stored, "ID", id, 1))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if list, err := d.Waiting(t.Context(), nil); err != nil || len(list) != 0 {
				t.Errorf("waiting: %v, %v", list, err)
			}
			if err := d.Answer(t.Context(), id, approval.Answer{Yes: true, By: aki}); !errors.Is(err,
				approval.ErrUnknown) {
				t.Errorf("an answer: %v", err)
			}
			if outcome, _, err := d.Outcome(t.Context(), id); err != nil || outcome != approval.Expired {
				t.Errorf("%s, %v", outcome, err)
			}
			if err := <-asked; !errors.Is(err, approval.ErrExpired) {
				t.Errorf("the call: %v", err)
			}
		})
	}
}

func TestWithdrawn(t *testing.T) {
	t.Parallel()
	d := approvals(t, storetest.Where(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	q := question(`{}`)
	stop := d.Watch(always, func(*approval.Question) { cancel() })
	defer stop()
	if _, err := d.Ask(ctx, q, approval.Prompter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if waiting, err := d.Waiting(t.Context(), nil); err != nil || len(waiting) != 0 {
		t.Errorf("a cancelled call's question waits: %v, %v", waiting, err)
	}
	if err := d.Answer(t.Context(), q.ID, approval.Answer{Yes: true, By: aki}); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("an answer to it: %v", err)
	}
}

// TestAnswerOfOtherProcess answers a question through the approvals of another process on the same store.
func TestAnswerOfOtherProcess(t *testing.T) {
	t.Parallel()
	dir := storetest.Where(t)
	may := &approval.Options{May: func(q *approval.Question, p approval.Person) bool { return p.User == "boss" }}
	asking, console := approvals(t, dir, may), approvals(t, dir, may)
	told := make(chan *approval.Question, 1)
	defer asking.Watch(always, func(q *approval.Question) { told <- q })()
	go func() {
		q := <-told
		tenant, other := "acme", "other"
		if list, err := console.Waiting(context.Background(), &tenant); err != nil || len(list) != 1 ||
			list[0].ID != q.ID {
			t.Errorf("waiting: %v, %v", list, err)
		}
		if list, err := console.Waiting(context.Background(), &other); err != nil || len(list) != 0 {
			t.Errorf("of another tenant: %v, %v", list, err)
		}
		if err := console.Answer(context.Background(), q.ID, approval.Answer{Yes: true, By: aki}); !errors.Is(err,
			approval.ErrMayNot) {
			t.Errorf("by the asker: %v", err)
		}
		if err := console.Answer(context.Background(), q.ID,
			approval.Answer{Yes: true, By: approval.Person{User: "boss"}}); err != nil {
			t.Error(err)
		}
	}()
	if by, err := asking.Ask(t.Context(), question(`{}`), saying(true)); err != nil || by != "boss" {
		t.Errorf("%q, %v: the asker may not agree, the boss did", by, err)
	}
}

// TestFirstAnswerCounts checks that only the first of many answers counts.
func TestFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	d := approvals(t, storetest.Where(t), nil)
	var answered sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	defer d.Watch(always, func(q *approval.Question) {
		for i := range 8 {
			answered.Go(func() {
				if d.Answer(context.Background(), q.ID, approval.Answer{Yes: i%2 == 0, By: aki}) == nil {
					mu.Lock()
					accepted++
					mu.Unlock()
				}
			})
		}
	})()
	_, err := d.Ask(t.Context(), question(`{}`), silent)
	answered.Wait()
	var refused *approval.RefusedError
	if err != nil && !errors.As(err, &refused) || accepted != 1 {
		t.Errorf("%v; %d answers were accepted", err, accepted)
	}
}

func TestRemembered(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := approvals(t, storetest.Where(t), &approval.Options{Now: func() time.Time { return now }})
	ask := func(change func(*approval.Question)) error {
		q := question(`{"a":1,"b":[2]}`)
		q.Remember = time.Minute
		change(q)
		_, err := d.Ask(t.Context(), q, saying(false))
		return err
	}
	first := question(`{"b":[2],"a":1}`)
	first.Remember = time.Minute
	if _, err := d.Ask(t.Context(), first, saying(true)); err != nil {
		t.Fatal(err)
	}
	if err := ask(func(*approval.Question) {}); err != nil {
		t.Errorf("the same call, with its arguments in another order: %v", err)
	}
	for name, change := range map[string]func(*approval.Question){
		"other arguments": func(q *approval.Question) {
			q.Arguments = json.RawMessage(
				`{"a":1,"b":[3]}`)
		},
		"a number of the same value": func(q *approval.Question) {
			q.Arguments = json.RawMessage(
				`{"a":1.0,"b":[2]}`)
		},
		"another tool":                    func(q *approval.Question) { q.Tool = "other" },
		"another plugin":                  func(q *approval.Question) { q.Plugin = "other" },
		"another command within the call": func(q *approval.Question) { q.Detail = "rm x" },
		"another user":                    func(q *approval.Question) { q.Caller.User = "" },
		"another session":                 func(q *approval.Question) { q.Caller.Session = "s2" },
		"another tenant":                  func(q *approval.Question) { q.Caller.Tenant = "other" },
		"another frontend":                func(q *approval.Question) { q.Caller.Frontend = "slack" },
		"a rule that remembers no more":   func(q *approval.Question) { q.Remember = 0 },
	} {
		if ask(change) == nil {
			t.Errorf("%s: the yes counts", name)
		}
	}
	now = now.Add(2 * time.Minute)
	if ask(func(*approval.Question) {}) == nil {
		t.Error("the yes counts after its time")
	}
}

// TestRememberedReply checks that the reply to a question with a remembered yes counts no longer than that yes.
func TestRememberedReply(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := approvals(t, storetest.Where(t), &approval.Options{Now: func() time.Time { return now }})
	q := func() *approval.Question {
		q := question(`{}`)
		q.Remember = time.Minute
		return q
	}
	var pending *approval.PendingError
	if _, err := d.Ask(t.Context(), q(), approval.Prompter{By: aki, Later: true}); !errors.As(err, &pending) {
		t.Fatal(err)
	}
	prompter := approval.Prompter{By: aki, Later: true, Reply: &approval.Reply{ID: pending.Question.ID, Yes: true}}
	for range 2 {
		if _, err := d.Ask(t.Context(), q(), prompter); err != nil {
			t.Errorf("within the minute: %v", err)
		}
	}
	now = now.Add(2 * time.Minute)
	if _, err := d.Ask(t.Context(), q(), prompter); !errors.Is(err, approval.ErrExpired) {
		t.Errorf("after the minute: %v", err)
	}
}

// TestSecondCall brings the answer with a second call.
func TestSecondCall(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := approvals(t, storetest.Where(t), &approval.Options{Now: func() time.Time { return now }})
	changed := func(change func(q *approval.Question)) *approval.Question {
		q := question(`{"n":1}`)
		change(q)
		return q
	}
	begin := func() string {
		t.Helper()
		var pending *approval.PendingError
		if _, err := d.Ask(t.Context(), question(`{"n":1}`), approval.Prompter{By: aki, Later: true}); !errors.As(err,
			&pending) {
			t.Fatalf("the first call: %v", err)
		}
		return pending.Question.ID
	}
	reply := func(q *approval.Question, id string, yes bool, by approval.Person) error {
		_, err := d.Ask(t.Context(), q,
			approval.Prompter{By: by, Later: true, Reply: &approval.Reply{ID: id, Yes: yes}})
		return err
	}
	id := begin()
	for name, test := range map[string]struct {
		err, want error
	}{
		"other arguments": {reply(question(`{"n":2}`), id, true, aki), approval.ErrOther},
		"another person": {reply(question(`{"n":1}`), id, true, approval.Person{Tenant: "acme", User: "eve"}),
			approval.ErrMayNot},
		"of the same name": {reply(question(`{"n":1}`), id, true, approval.Person{Tenant: "other", User: "aki"}),
			approval.ErrMayNot},
		"another session": {reply(changed(func(q *approval.Question) { q.Caller.Session = "s2" }), id, true, aki),
			approval.ErrOther},
		"another tenant": {reply(changed(func(q *approval.Question) { q.Caller.Tenant = "other" }), id, true, aki),
			approval.ErrOther},
		"another frontend": {reply(changed(func(q *approval.Question) { q.Caller.Frontend = "terminal" }), id, true,
			aki),
			approval.ErrOther},
		"another tool": {reply(changed(func(q *approval.Question) { q.Tool = "file_write" }), id, true, aki),
			approval.ErrOther},
		"another plugin": {reply(changed(func(q *approval.Question) { q.Plugin = "other" }), id, true, aki),
			approval.ErrOther},
		"another command": {reply(changed(func(q *approval.Question) { q.Detail = "rm x" }), id, true, aki),
			approval.ErrOther},
		"an invented answer": {reply(question(`{"n":1}`), "apr_x", true, aki), approval.ErrUnknown},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if err := reply(question(` { "n" : 1 } `), id, true, aki); err != nil {
		t.Errorf("yes, with the same arguments in another form: %v", err)
	}
	if err := reply(question(`{"n":1}`), id, true, aki); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("the same answer again: %v", err)
	}
	id = begin()
	var refused *approval.RefusedError
	if err := reply(question(`{"n":1}`), id, false, aki); !errors.As(err, &refused) {
		t.Errorf("no: %v", err)
	}
	if err := reply(question(`{"n":1}`), id, true, aki); !errors.As(err, &refused) {
		t.Errorf("yes after no: %v", err)
	}
	id = begin()
	if err := d.Answer(t.Context(), id, approval.Answer{By: approval.Person{Operator: true,
		User: "operator"}}); err != nil {
		t.Fatal(err)
	}
	if err := reply(question(`{"n":1}`), id, true, aki); !errors.As(err, &refused) || refused.By != "operator" {
		t.Errorf("yes after somebody else's no: %v", err)
	}
	id = begin()
	now = now.Add(5 * time.Minute)
	if err := reply(question(`{"n":1}`), id, true, aki); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("yes after the time: %v", err)
	}
}

// TestHeartbeat checks that a question waits if an operator watches in another process or Options.Operators is set.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	dir := storetest.Where(t)
	now := time.Now()
	asking := approvals(t, dir, &approval.Options{Timeout: 5 * time.Millisecond, Now: func() time.Time { return now }})
	console := approvals(t, dir, &approval.Options{Now: func() time.Time { return now }})
	expect := func(what string, want error) {
		t.Helper()
		if _, err := asking.Ask(t.Context(), question(`{}`), approval.Prompter{By: aki}); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	attend := func(id string) {
		t.Helper()
		if err := console.Heartbeat(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	expect("nobody watches", approval.ErrUnreachable)
	attend("a")
	expect("somebody watches", approval.ErrExpired)
	now = now.Add(approval.HeartbeatTTL / 2)
	attend("a")
	now = now.Add(approval.HeartbeatTTL / 2)
	expect("somebody watches still", approval.ErrExpired)
	now = now.Add(approval.HeartbeatTTL)
	expect("nobody has been there for a while", approval.ErrUnreachable)
	attend("a")
	if err := console.RemoveWatcher(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	expect("another one has left", approval.ErrExpired)
	if err := console.RemoveWatcher(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	expect("all have left", approval.ErrUnreachable)
	always := approvals(t, dir, &approval.Options{Timeout: 5 * time.Millisecond, Operators: true})
	if _, err := always.Ask(t.Context(), question(`{}`), approval.Prompter{By: aki}); !errors.Is(err, approval.ErrExpired) {
		t.Errorf("operators are there by configuration: %v", err)
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	asked := &approval.Question{ID: "apr_1"}
	for want, test := range map[string]struct {
		q   *approval.Question
		err error
	}{
		approval.Yes:         {asked, nil},
		approval.Remembered:  {&approval.Question{}, nil},
		approval.No:          {asked, &approval.RefusedError{}},
		approval.Pending:     {asked, &approval.PendingError{}},
		approval.Expired:     {asked, approval.ErrExpired},
		approval.Unreachable: {asked, fmt.Errorf("%w: x", approval.ErrUnreachable)},
		approval.Withdrawn:   {asked, context.Canceled},
		approval.Invalid:     {asked, approval.ErrOther},
		approval.Failed:      {asked, errors.New("disk")},
	} {
		if got := approval.OutcomeOf(test.q, test.err); got != want {
			t.Errorf("%v: %s, want %s", test.err, got, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := approvals(t, storetest.Where(t), &approval.Options{Now: func() time.Time { return now }})
	pending := func() string {
		q := question(`{}`)
		var waits *approval.PendingError
		if _, err := d.Ask(t.Context(), q, approval.Prompter{Later: true, By: aki}); !errors.As(err, &waits) {
			t.Fatal(err)
		}
		return q.ID
	}
	answer := func(id string, yes bool) {
		if err := d.Answer(t.Context(), id, approval.Answer{Yes: yes, By: aki}); err != nil {
			t.Fatal(err)
		}
	}
	yes, no, gone, late := pending(), pending(), pending(), pending()
	answer(yes, true)
	answer(no, false)
	for _, id := range []string{gone, yes} {
		if err := d.Withdraw(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ id, want, by string }{
		{yes, approval.Yes, "aki"}, {no, approval.No, "aki"}, {gone, approval.Withdrawn, ""},
		{late, approval.Pending, ""},
	} {
		if got, by, err := d.Outcome(t.Context(), test.id); err != nil || got != test.want || by != test.by {
			t.Errorf("%q by %q, %v; want %q by %q", got, by, err, test.want, test.by)
		}
	}
	now = now.Add(time.Hour)
	if got, _, err := d.Outcome(t.Context(), late); err != nil || got != approval.Expired {
		t.Errorf("after its time: %q, %v", got, err)
	}
	if _, _, err := d.Outcome(t.Context(), "apr_none"); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("one that is none: %v", err)
	}
}
