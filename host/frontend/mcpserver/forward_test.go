package mcpserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// slowAsker is a server that asks for a name and then works until it is let go.
type slowAsker struct {
	// begun and asked count; ended has how calls have ended.
	begun, asked   atomic.Int32
	working, letGo chan struct{}
	ended          chan error
}

func (n *slowAsker) Call(ctx context.Context, invocation *catalog.Invocation) (response *abi.Response, err error) {
	n.begun.Add(1)
	defer func() { n.ended <- err }()
	answer, err := invocation.Elicit(ctx, &elicitation.Request{Message: "Who are you?",
		Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
	if err != nil {
		return nil, err
	}
	n.asked.Add(1)
	if invocation.Progress != nil {
		for i := range 3 {
			invocation.Progress(abi.Progress{Progress: float64(i), Message: "step"})
		}
	}
	n.working <- struct{}{}
	select {
	case <-n.letGo:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &abi.Response{Content: []abi.Content{
		{Type: abi.Text, Text: fmt.Sprint("hello ", answer.Content["name"])}, {Type: abi.Image, MIMEType: "image/png",
			Data: []byte{0, 255, 10}},
	}}, nil
}

// newSlowAsker offers the server at the three replicas of a fleet.
func newSlowAsker(t *testing.T, change func(*Options)) (*fleet, *slowAsker) {
	t.Helper()
	n := &slowAsker{working: make(chan struct{}, 100), letGo: make(chan struct{}), ended: make(chan error, 100)}
	return fleetOf(t, n, change), n
}

func fleetOf(t *testing.T, backend catalog.Backend, change func(*Options)) *fleet {
	t.Helper()
	c := new(catalog.Catalog)
	m := &manifest.Manifest{Name: "crm", Version: "1.0.0", Description: manifest.Text{"en": "A test."},
		Tools: []manifest.Tool{tool("greet"), tool("visit")}}
	if err := errors.Join(m.Validate(), c.Put(catalog.Source{Name: m.Name, Backend: backend, Asks: true, Upstream: true}, m)); err != nil {
		t.Fatal(err)
	}
	return newFleet(t, c, func(int) Pipeline { return pipeline.New(c, nil) }, change)
}

const aki = `,"inputResponses":{"question1":{"action":"accept","content":{"name":"Aki"}}}`

// wait fails the test if nothing comes.
func wait[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-testwait.Context(t).Done():
		t.Fatal("it does not happen")
	}
	return v
}

// TestPendingCallAnywhere: without sessions, the answers to what a server asks may come to any replica.
func TestPendingCallAnywhere(t *testing.T) {
	t.Parallel()
	backend := new(curious)
	f := fleetOf(t, backend, nil)
	session := connect(t, overHTTP(f.url), withoutSessions,
		answering("accept", map[string]any{"name": "Aki"}).options())
	defer session.Close()
	const calls = 7
	for i := range calls {
		if got := textOf(t, callWith(t, session, "greet", i)); got != "accept Aki <nil>; accept Aki <nil>; " {
			t.Errorf("got %q", got)
		}
	}
	if n := backend.begun.Load(); n != calls {
		t.Errorf("%d calls", n)
	}
	f.expectNothingLeft(t)
}

// expectNothingLeft waits until nothing of calls is in the store.
func (f *fleet) expectNothingLeft(t *testing.T) {
	t.Helper()
	for _, table := range []string{"mcp_mail", "mcp_stream", "mcp_event"} {
		eventually(t, func() bool { return f.count(t, table) == 0 })
	}
}

func (f *fleet) count(t *testing.T, from string) (n int) {
	t.Helper()
	err := f.replicas[len(f.replicas)-1].store.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPendingCallElsewhere: at another replica too, a call goes on for the one who made it, with the same arguments,
// and for nobody else.
func TestPendingCallElsewhere(t *testing.T) {
	t.Parallel()
	akis, akiHash := bearer.New()
	bens, benHash := bearer.New()
	opened := newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "aki", Hash: akiHash}, {Name: "ben", Hash: benHash}}})
	f, backend := newSlowAsker(t, func(o *Options) { o.Auth = opened })
	close(backend.letGo)
	a, b, c := f.replicas[0].Handler(), f.replicas[1].Handler(), f.replicas[2].Handler()
	by := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	first := callAgain(t, a, "greet", "", "", by(akis)...)
	replica := f.replicas[0].store.Replica()
	if !strings.HasPrefix(first.state, pendingPrefix+replica+"-") || first.key != "question1" {
		t.Fatalf("%s", first.result)
	}
	for what, reply := range map[string]roundReply{
		"another user":    callAgain(t, b, "greet", first.state, aki, by(bens)...),
		"another tool":    callAgain(t, b, "visit", first.state, aki, by(akis)...),
		"other arguments": callAgainWith(t, b, "greet", `{"n":2}`, first.state, aki, by(akis)...),
		"a state made up": callAgain(t, b, "greet", pendingPrefix+replica+"-AAAA", aki, by(akis)...),
		"no replica": callAgain(t, b, "greet", pendingPrefix+strings.Repeat("A", 9000)+"-AAAA", aki,
			by(akis)...),
		"a part of the name": callAgain(t, b, "greet", first.state[:len(first.state)-1], aki, by(akis)...),
	} {
		if !strings.Contains(reply.result, "names no pending call of yours") {
			t.Errorf("%s: %s", what, reply.result)
		}
	}
	if again := callAgain(t, b, "greet", first.state, "", by(akis)...); again.key != "question1" ||
		again.state != first.state {
		t.Errorf("without an answer: %s", again.result)
	}
	last := callAgain(t, c, "greet", first.state, aki, by(akis)...)
	if !strings.Contains(last.result, `"text":"hello Aki"`) || !strings.Contains(last.result, `"data":"AP8K"`) ||
		!strings.Contains(last.result, `"id":1`) {
		t.Errorf("%s", last.result)
	}
	if after := callAgain(t, b, "greet", first.state, aki, by(akis)...); !strings.Contains(after.result, "names no pending call of yours") {
		t.Errorf("after its end: %s", after.result)
	}
	if begun, asked := backend.begun.Load(), backend.asked.Load(); begun != 1 || asked != 1 {
		t.Errorf("%d calls, %d answers", begun, asked)
	}
	f.expectNothingLeft(t)
}

// TestProgressElsewhere: what a call reports reaches the client wherever it waits.
func TestProgressElsewhere(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	close(backend.letGo)
	withToken := func(body string) string {
		return strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":9,`,
			1)
	}
	first := callAgainIn(t.Context(), f.replicas[0].Handler(), withToken(roundBody("greet", `{"n":1}`, "", "")))
	body := withToken(roundBody("greet", `{"n":1}`, first.state, aki))
	w := do(f.replicas[1].Handler(), post(withoutSessions, body))
	if got := w.Body.String(); w.Header().Get("Content-Type") != "text/event-stream" ||
		!strings.Contains(got, `"progressToken":9`) ||
		strings.Index(got, `"progressToken":9`) > strings.Index(got, "hello Aki") {
		t.Errorf("%v %s", w.Header(), got)
	}
}

// TestPendingCallDiesWithItsReplica: nobody waits for an answer that cannot come, and nobody takes it for one that
// came.
func TestPendingCallDiesWithItsReplica(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	a, b := f.replicas[0], f.replicas[1]
	first, other := callAgain(t, a.Handler(), "greet", "", ""), callAgain(t, a.Handler(), "greet", "", "")
	answered := make(chan roundReply, 1)
	go func() { answered <- callAgain(t, b.Handler(), "greet", first.state, aki) }()
	wait(t, backend.working)
	_ = a.store.Close() // what it has to say at its end does not reach the store
	if got := wait(t, answered); !strings.Contains(got.result, lostText) || !strings.Contains(got.result, `"id":1`) {
		t.Errorf("%s", got.result)
	}
	if late := callAgain(t, b.Handler(), "greet", other.state, aki); !strings.Contains(late.result, "names no pending call of yours") {
		t.Errorf("%s", late.result)
	}
}

// TestAnswerAgain: an answer that comes again, because the replica that it came to is no more, goes on with the call
// where it is.
func TestAnswerAgain(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
	first := callAgain(t, a.Handler(), "greet", "", "")
	lost, again := make(chan roundReply, 1), make(chan roundReply, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { lost <- callAgainIn(ctx, b.Handler(), roundBody("greet", `{"n":1}`, first.state, aki)) }()
	wait(t, backend.working)
	_ = b.store.Close() // it cannot tell that its client has gone
	cancel()
	wait(t, lost)
	waiting := a.pending.of(sessionstore.Key(first.state))
	before := waiting.attends()
	go func() { again <- callAgain(t, c.Handler(), "greet", first.state, aki) }()
	eventually(t, func() bool { return waiting.attends() != before })
	close(backend.letGo)
	if got := wait(t, again); !strings.Contains(got.result, "hello Aki") {
		t.Errorf("%s", got.result)
	}
	if begun, asked := backend.begun.Load(), backend.asked.Load(); begun != 1 || asked != 1 {
		t.Errorf("%d calls, %d answers", begun, asked)
	}
}

// TestAnswersAtOnce: of two answers one counts, and one request gets the result.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	close(backend.letGo)
	for range 5 {
		first := callAgain(t, f.replicas[0].Handler(), "greet", "", "")
		answered := make(chan roundReply, len(f.replicas))
		for _, r := range f.replicas {
			go func() { answered <- callAgain(t, r.Handler(), "greet", first.state, aki) }()
		}
		results := 0
		for range f.replicas {
			got := wait(t, answered)
			switch {
			case strings.Contains(got.result, "hello Aki"):
				results++
			case !strings.Contains(got.result, "names no pending call") && !strings.Contains(got.result, "a later request"):
				t.Errorf("%s", got.result)
			}
		}
		if results == 0 {
			t.Error("nobody got the result")
		}
	}
	if begun, asked := backend.begun.Load(), backend.asked.Load(); begun != 5 || asked != 5 {
		t.Errorf("%d calls, %d answers", begun, asked)
	}
}

// TestClientLeavesElsewhere: a client that closes its connection cancels the call, wherever that is.
func TestClientLeavesElsewhere(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	first := callAgain(t, f.replicas[0].Handler(), "greet", "", "")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan roundReply, 1)
	go func() {
		left <- callAgainIn(ctx, f.replicas[1].Handler(), roundBody("greet", `{"n":1}`, first.state, aki))
	}()
	wait(t, backend.working)
	cancel()
	if err := wait(t, backend.ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wait(t, left)
	f.expectNothingLeft(t)
}

// slowAsk returns from Ask when after has returned, with the error of a context that has ended meanwhile, as a
// connection to the database does.
type slowAsk struct {
	sharedStore
	after func()
}

func (s *slowAsk) Ask(ctx context.Context, replica string, mail sessionstore.Mail) (bool, error) {
	sent, err := s.sharedStore.Ask(ctx, replica, mail)
	s.after()
	return sent, errors.Join(err, ctx.Err())
}

// TestClientLeavesWhileForwarding: a client that leaves while its request is being sent to another replica cancels the
// call there.
func TestClientLeavesWhileForwarding(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	first := callAgain(t, f.replicas[0].Handler(), "greet", "", "")
	ctx, cancel := context.WithCancel(t.Context())
	b := f.replicas[1].Server
	b.replicas.shared = &slowAsk{b.replicas.shared, func() {
		wait(t, backend.working)
		cancel()
	}}
	callAgainIn(ctx, b.Handler(), roundBody("greet", `{"n":1}`, first.state, aki))
	if err := wait(t, backend.ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.expectNothingLeft(t)
}

// TestConnectionsAreLostMeanwhile: an answer outlives the connections to the database.
func TestConnectionsAreLostMeanwhile(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	first := callAgain(t, f.replicas[0].Handler(), "greet", "", "")
	answered := make(chan roundReply, 1)
	go func() { answered <- callAgain(t, f.replicas[1].Handler(), "greet", first.state, aki) }()
	wait(t, backend.working)
	for range 3 {
		_ = f.replicas[2].store.View(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(),
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			return err
		})
	}
	close(backend.letGo)
	if got := wait(t, answered); !strings.Contains(got.result, "hello Aki") {
		t.Errorf("%s", got.result)
	}
}

// TestShutdownWaitsForForwarded: a replica that ends waits for requests of others as for its own.
func TestShutdownWaitsForForwarded(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	a := f.replicas[0]
	first := callAgain(t, a.Handler(), "greet", "", "")
	answered, ended := make(chan roundReply, 1), make(chan error, 1)
	go func() { answered <- callAgain(t, f.replicas[1].Handler(), "greet", first.state, aki) }()
	wait(t, backend.working)
	if n := a.Load().Requests; n != 1 {
		t.Errorf("it counts %d requests", n)
	}
	go func() { ended <- a.Shutdown(t.Context()) }()
	<-a.draining.Done()
	close(backend.letGo)
	if err := wait(t, ended); err != nil {
		t.Error(err)
	}
	if got := wait(t, answered); !strings.Contains(got.result, "hello Aki") {
		t.Errorf("%s", got.result)
	}
}

// TestNothingInTheClear: neither questions nor answers nor results can be read in the store, in any protocol version.
func TestNothingInTheClear(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			backend := new(curious)
			f := fleetOf(t, backend, nil)
			f.spy(t)
			session := connect(t, overHTTP(f.url), version,
				answering("accept", map[string]any{"name": "Aki"}).options())
			defer session.Close()
			for i := range 4 {
				if got := textOf(t, callWith(t, session, "greet", i)); !strings.Contains(got, "accept Aki <nil>; accept Aki <nil>; ") {
					t.Errorf("got %q", got)
				}
			}
			if n := f.count(t, "spied"); n < 8 {
				t.Errorf("%d rows were seen", n)
			}
			if n := f.count(t, "spied WHERE what LIKE '%\"Aki%' OR what LIKE '% Aki%' OR what LIKE '%Who are you%' OR what LIKE '%jsonrpc%' OR what LIKE '%"+pendingPrefix+"%'"); n > 0 {
				t.Errorf("%d rows can be read", n)
			}
		})
	}
}

// spy copies whatever is written for other replicas.
func (f *fleet) spy(t *testing.T) {
	t.Helper()
	err := f.replicas[0].store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `CREATE TABLE spied (what TEXT);
			CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO spied VALUES (CAST(NEW AS TEXT)); RETURN NEW; END';
			CREATE TRIGGER spy BEFORE INSERT ON mcp_mail FOR EACH ROW EXECUTE FUNCTION spy();
			CREATE TRIGGER spy BEFORE INSERT ON mcp_event FOR EACH ROW EXECUTE FUNCTION spy();
			CREATE TRIGGER spy BEFORE INSERT ON mcp_stream FOR EACH ROW EXECUTE FUNCTION spy()`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStrayMail: mail that is nobody's, or was not sealed by who knows the call, does no harm.
func TestStrayMail(t *testing.T) {
	t.Parallel()
	f, backend := newSlowAsker(t, nil)
	close(backend.letGo)
	a, b := f.replicas[0], f.replicas[1]
	first := callAgain(t, a.Handler(), "greet", "", "")
	seal := func(id string, data []byte) func(string) string {
		return func(place string) string { return sessionstore.Seal(id, place, data) }
	}
	for i, body := range []func(string) string{
		func(string) string { return "" }, func(string) string { return "nonsense" },
		seal("another", withHeader(forwardHeader{}, []byte("{}"))),
		seal(first.state, []byte("{")), seal(first.state, withHeader(forwardHeader{}, []byte("{"))),
	} {
		mail := sessionstore.Mail{ID: fmt.Sprint("stray", i), Kind: sessionstore.Request,
			Session: sessionstore.Key(first.state)}
		mail.Body = body(sessionstore.MailPlace(mail.Kind, mail.ID))
		if sent, err := b.replicas.shared.Ask(t.Context(), a.store.Replica(), mail); !sent || err != nil {
			t.Fatal(sent, err)
		}
		eventually(t, func() bool {
			stream, err := b.replicas.shared.Stream(t.Context(), mail.Session, mail.ID, 0)
			return err == nil && stream.Ended
		})
	}
	if last := callAgain(t, b.Handler(), "greet", first.state, aki); !strings.Contains(last.result, "hello Aki") {
		t.Errorf("%s", last.result)
	}
}

func (t *pendingCall) attends() *attendant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attendant
}
