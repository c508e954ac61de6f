// Package approval asks people about calls that the policy wants a yes for.
//
// A question is bound to what was asked: caller and session, tool, and the digest of the arguments. Its answer counts once, or for a stated
// time for the very same call. The first answer wins; no answer in time is a no. Questions lie in the host's store, so that they can be
// answered at any door, by any process over that store, and none outlives its time.
package approval

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Caller is who made a call.
type Caller struct {
	Door    string `json:"door,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
}

// Question is what people are asked.
type Question struct {
	// ID is set by Ask. It is no secret: who may answer is checked.
	ID     string `json:"id"`
	Caller Caller `json:"caller"`
	// Tool is the name at the doors, Plugin who serves it, Title its title in the caller's language.
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	Title  string `json:"title,omitempty"`
	// Arguments is the JSON object of the call, as it may be shown.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Detail is what is asked about within the call, such as a command.
	Detail string `json:"detail,omitempty"`
	// Rule and Reason are the policy's.
	Rule   string `json:"rule"`
	Reason string `json:"reason,omitempty"`
	// Destructive and OpenWorld are the tool's hints.
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
	// Approvers are groups and users who may answer. Empty means the caller.
	Approvers []string `json:"approvers,omitempty"`
	// Remember is for how long a yes holds for the same call. Zero means once.
	Remember time.Duration `json:"remember,omitempty"`
	// Asked and Expires are set by Ask.
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
}

// binding is what a yes holds for: the caller in its session, the tool and its arguments.
func (q *Question) binding() string {
	hash := sha256.New()
	// The parts are plain data, so encoding them cannot fail. A JSON array keeps them apart.
	_ = json.NewEncoder(hash).Encode([]any{q.Caller, q.Plugin, q.Tool, q.Detail, canonical(q.Arguments)})
	return hex.EncodeToString(hash.Sum(nil))
}

// canonical makes equal arguments equal, whatever the order of their keys. Numbers stay as they were written.
func canonical(arguments json.RawMessage) json.RawMessage {
	var v any
	decoder := json.NewDecoder(newReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return arguments
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return encoded
}

// Person is somebody who answers.
type Person struct {
	User string
	// Groups are those that the door knows of.
	Groups []string
	// Operator says that this is somebody who operates the host, and so may answer anything.
	Operator bool
}

// Answer is what a person said.
type Answer struct {
	Yes bool
	By  Person
}

// Options configures a Desk.
type Options struct {
	// May reports whether a person may answer a question. Nil lets the caller alone answer, and operators.
	May func(q *Question, p Person) bool
	// Timeout is how long a question waits. Zero means 5 minutes.
	Timeout time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Desk is where questions wait for answers. It is safe for concurrent use.
type Desk struct {
	store   *store.Store
	options Options

	// mu guards what follows.
	mu        sync.Mutex
	watchers  map[int]func(*Question) // tell people
	next      int
	reachable int                      // watchers that reach people
	waiting   map[string]chan struct{} // by question: closed when it was answered in this process
}

// Errors of Ask and Reply.
var (
	// ErrUnreachable: there is nobody to ask.
	ErrUnreachable = errors.New("nobody who could agree to it can be reached")
	// ErrExpired: nobody answered in time.
	ErrExpired = errors.New("nobody agreed to it in time")
	// ErrUnknown: there is no such question, or it was answered, expired or withdrawn already.
	ErrUnknown = errors.New("there is no such question, or it has been answered, has expired or was withdrawn")
	// ErrMayNot: this person may not answer the question.
	ErrMayNot = errors.New("you may not answer this question")
	// ErrOther: the answer belongs to a question about another call.
	ErrOther = errors.New("this approval is for another call")
)

// RefusedError says that a person said no.
type RefusedError struct{ By string }

func (e *RefusedError) Error() string {
	if e.By == "" {
		return "it was refused"
	}
	return "it was refused by " + e.By
}

// PendingError says that the caller has to bring the answer with a second call.
type PendingError struct{ Question *Question }

func (e *PendingError) Error() string { return "it waits for an approval" }

// New returns a Desk on s, whose tables it makes. Errors are the store's.
func New(ctx context.Context, s *store.Store, options *Options) (*Desk, error) {
	if err := s.Migrate(ctx, "approval", migration); err != nil {
		return nil, err
	}
	d := &Desk{store: s, watchers: map[int]func(*Question){}, waiting: map[string]chan struct{}{}}
	if options != nil {
		d.options = *options
	}
	if d.options.May == nil {
		d.options.May = func(q *Question, p Person) bool { return p.Operator || p.User == q.Caller.User }
	}
	if d.options.Timeout == 0 {
		d.options.Timeout = 5 * time.Minute
	}
	if d.options.Now == nil {
		d.options.Now = time.Now
	}
	return d, nil
}

// Watch calls tell with every question of this process that begins to wait, until stop is called. With reaches, tell reaches people who can
// answer: without such a watcher, and without a way to the caller, questions fail at once.
func (d *Desk) Watch(reaches bool, tell func(*Question)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.next
	d.next++
	d.watchers[id] = tell
	if reaches {
		d.reachable++
	}
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, id)
		if reaches {
			d.reachable--
		}
	})
}

// Way is how the door can reach the caller. At most one of its fields is set.
type Way struct {
	// Ask asks the person at the door, who is By, and returns the answer.
	Ask func(ctx context.Context, q *Question) (yes bool, err error)
	// Later says that the caller brings the answer with a second call, in Reply.
	Later bool
	// Reply is that answer.
	Reply *Reply
	// By is the person at the door.
	By Person
}

// Reply is the second half of a question that went out as a *PendingError.
type Reply struct {
	ID  string
	Yes bool
}

// Ask asks about a call and returns nil, and who agreed, if it was agreed to. A yes that is remembered counts.
//
// It fails with a *RefusedError, ErrExpired, ErrUnreachable, ErrMayNot, ErrOther, ErrUnknown, a *PendingError if the answer comes later, ctx's error
// if the call is cancelled, which withdraws the question, or the store's.
func (d *Desk) Ask(ctx context.Context, q *Question, way Way) (by string, err error) {
	if by, ok, err := d.remembered(ctx, q); err != nil || ok {
		return by, err
	}
	if way.Reply != nil {
		return d.replied(ctx, q, way)
	}
	self := d.options.May(q, way.By)
	if (way.Ask == nil && !way.Later || !self) && !d.reaches() {
		return "", ErrUnreachable
	}
	if err := d.open(ctx, q); err != nil {
		return "", err
	}
	if way.Later && self {
		d.tell(q)
		return "", &PendingError{q}
	}
	return d.wait(ctx, q, way, self)
}

// open writes the question down.
func (d *Desk) open(ctx context.Context, q *Question) error {
	q.ID = "apr_" + rand.Text()
	q.Asked = d.options.Now().UTC().Truncate(time.Millisecond)
	q.Expires = q.Asked.Add(d.options.Timeout)
	return d.insert(ctx, q)
}

func (d *Desk) reaches() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reachable > 0
}

// tell tells those who watch.
func (d *Desk) tell(q *Question) {
	d.mu.Lock()
	watchers := make([]func(*Question), 0, len(d.watchers))
	for _, tell := range d.watchers {
		watchers = append(watchers, tell)
	}
	d.mu.Unlock()
	for _, tell := range watchers {
		tell(q)
	}
}

// poll is how often a waiting question looks for answers of other processes.
const poll = time.Second

// wait waits for the first answer.
func (d *Desk) wait(ctx context.Context, q *Question, way Way, self bool) (string, error) {
	answered := make(chan struct{})
	d.mu.Lock()
	d.waiting[q.ID] = answered
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, q.ID)
		d.mu.Unlock()
	}()
	d.tell(q)
	asking, stop := context.WithTimeout(ctx, d.options.Timeout)
	defer stop()
	if way.Ask != nil && self {
		go d.askHere(asking, q, way)
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		by, err := d.claim(context.WithoutCancel(ctx), q.ID)
		if err == nil || !errors.Is(err, errWaiting) {
			return by, err
		}
		select {
		case <-answered:
		case <-ticker.C:
		case <-asking.Done():
			return "", d.give(ctx, q)
		}
	}
}

// give gives a question up.
func (d *Desk) give(ctx context.Context, q *Question) error {
	state, reason := stateExpired, ErrExpired
	if ctx.Err() != nil {
		state, reason = stateWithdrawn, ctx.Err()
	}
	if err := d.end(context.WithoutCancel(ctx), q.ID, state); err != nil {
		return err
	}
	return reason
}

// askHere brings the answer of the person at the door.
func (d *Desk) askHere(ctx context.Context, q *Question, way Way) {
	yes, err := way.Ask(ctx, q)
	if err != nil {
		// The person cannot be reached after all. Others may be, and if not, the time runs out; without others there is no point.
		if !d.reaches() && ctx.Err() == nil {
			_ = d.Answer(context.WithoutCancel(ctx), q.ID, Answer{By: Person{Operator: true, User: fmt.Sprintf("the host, which could not ask: %v", err)}})
		}
		return
	}
	_ = d.Answer(context.WithoutCancel(ctx), q.ID, Answer{Yes: yes, By: way.By}) // another answer may have been first
}

// replied takes the answer that a second call brings.
func (d *Desk) replied(ctx context.Context, q *Question, way Way) (string, error) {
	asked, err := d.Question(ctx, way.Reply.ID)
	if err != nil {
		return "", err
	}
	if asked.binding() != q.binding() {
		return "", ErrOther
	}
	err = d.Answer(ctx, way.Reply.ID, Answer{Yes: way.Reply.Yes, By: way.By})
	if err != nil && !errors.Is(err, ErrUnknown) {
		return "", err
	}
	// Somebody else may have answered before: that answer counts.
	by, err := d.claim(ctx, way.Reply.ID)
	if errors.Is(err, errWaiting) {
		err = ErrUnknown
	}
	return by, err
}

// Answer answers a question. It fails with ErrUnknown if the question does not wait any more, with ErrMayNot, or with the store's error.
func (d *Desk) Answer(ctx context.Context, id string, a Answer) error {
	q, err := d.Question(ctx, id)
	if err != nil {
		return err
	}
	if !a.By.Operator && !d.options.May(q, a.By) {
		return ErrMayNot
	}
	if err := d.record(ctx, q, a); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if answered, ok := d.waiting[id]; ok {
		delete(d.waiting, id)
		close(answered)
	}
	return nil
}
