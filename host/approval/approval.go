// Package approval asks people about calls that the policy wants a yes for.
//
// A question is bound to what was asked: caller and session, tool, and the digest of the arguments. Its answer counts once, or for a stated
// time for the very same call. The first answer wins; no answer in time is a no. Questions lie in the host's store, so that they can be
// answered at any door, by any process over that store, and none outlives its time.
package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/store"
)

// Person is somebody who answers.
type Person struct {
	Tenant, User string
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
	// Operators says that operators look at questions, also where nobody attends: see Attend.
	Operators bool
	// Now is the clock. Nil means the store's (store.Store.Time), on which replicas agree.
	Now func() time.Time
}

// Desk is where questions wait for answers. It is safe for concurrent use.
type Desk struct {
	store *store.Store
	// options do not change but for Timeout and Operators, which mu guards.
	options Options

	// mu guards what follows too.
	mu       sync.Mutex
	watchers map[int]watcher
	next     int
	waiting  map[string]chan struct{} // by question: closed when it was answered in this process
}

// watcher tells people of questions. reaches reports which ones it brings to people who can answer; nil is none.
type watcher struct {
	reaches func(*Question) bool
	tell    func(*Question)
}

// New returns a Desk on s, whose tables it makes. Errors are the store's.
func New(ctx context.Context, s *store.Store, options *Options) (*Desk, error) {
	if err := s.Migrate(ctx, "approval", migrations...); err != nil {
		return nil, err
	}
	d := &Desk{store: s, watchers: map[int]watcher{}, waiting: map[string]chan struct{}{}}
	if options != nil {
		d.options = *options
	}
	if d.options.May == nil {
		d.options.May = func(q *Question, p Person) bool {
			return p.Operator || p.Tenant == q.Caller.Tenant && p.User == q.Caller.User
		}
	}
	d.Set(d.options.Timeout, d.options.Operators)
	if d.options.Now == nil {
		d.options.Now = s.Time
	}
	return d, nil
}

// Set changes Timeout and Operators, as in Options, for questions that are asked from now on.
func (d *Desk) Set(timeout time.Duration, operators bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.options.Timeout, d.options.Operators = cmp.Or(timeout, 5*time.Minute), operators
}

// Timeout is how long a question waits.
func (d *Desk) Timeout() time.Duration {
	timeout, _ := d.rules()
	return timeout
}

// rules are Timeout and Operators as they are now.
func (d *Desk) rules() (timeout time.Duration, operators bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.options.Timeout, d.options.Operators
}

// Watch calls tell with every question of this process that begins to wait, until stop is called. reaches reports whether tell brings a
// question to people who can answer it, before the question has an ID; nil means none. Without a watcher that does, and without a way to
// the caller, a question fails at once. Both must be quick.
func (d *Desk) Watch(reaches func(*Question) bool, tell func(*Question)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.next
	d.next++
	d.watchers[id] = watcher{reaches, tell}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, id)
	}
}

// watching are those that watch now.
func (d *Desk) watching() []watcher {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.watchers))
}

// Way is how the door can reach the caller.
type Way struct {
	// Ask asks the person at the door, who is By, and returns the answer. It must return when ctx ends. An error says that the person
	// cannot be asked after all.
	Ask func(ctx context.Context, q *Question) (yes bool, err error)
	// Fill puts a question of a server's to the person at the door, By, who made the call and alone may answer, and returns the answer. It
	// must return when ctx ends. It is elicitation.ErrMisfit if what came back is no answer, and any other error if the person cannot be
	// asked. Nil means that nobody can be.
	Fill func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error)
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
	if way.Ask == nil && !way.Later || !self {
		if ok, err := d.reaches(ctx, q); err != nil {
			return "", err
		} else if !ok {
			return "", ErrUnreachable
		}
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

// IDPrefix begins the ID of every question.
const IDPrefix = "apr_"

// open writes the question down.
func (d *Desk) open(ctx context.Context, q *Question) error {
	q.ID = IDPrefix + rand.Text()
	q.Asked = d.options.Now().UTC().Truncate(time.Millisecond)
	timeout, _ := d.rules()
	q.Expires = q.Asked.Add(timeout)
	return d.insert(ctx, q)
}

// reaches reports whether there are people to answer q other than the caller at the door.
func (d *Desk) reaches(ctx context.Context, q *Question) (bool, error) {
	brings := func(w watcher) bool { return w.reaches != nil && w.reaches(q) }
	if _, operators := d.rules(); operators || slices.ContainsFunc(d.watching(), brings) {
		return true, nil
	}
	return d.attended(ctx)
}

// tell tells those who watch.
func (d *Desk) tell(q *Question) {
	for _, w := range d.watching() {
		w.tell(q)
	}
}

// poll is how often a waiting question looks for answers of other processes.
const poll = time.Second

// wait waits for the first answer.
func (d *Desk) wait(ctx context.Context, q *Question, way Way, self bool) (string, error) {
	answered := d.await(q.ID)
	defer d.forget(q.ID)
	d.tell(q)
	asking, stop := context.WithTimeout(ctx, q.Expires.Sub(q.Asked))
	here := make(chan error, 1)
	if way.Ask != nil && self {
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			here <- d.askHere(asking, q, way)
		}()
		defer func() { <-asked }()
	}
	defer stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		by, err := d.claim(context.WithoutCancel(ctx), q.ID, q)
		if !errors.Is(err, errWaiting) && !away(err) {
			return by, err
		}
		select {
		case <-answered:
			answered = nil // it is in the store, as soon as that can be read
		case <-ticker.C:
		case <-asking.Done():
			return d.give(ctx, q)
		case err := <-here:
			if err := d.stranded(asking, q, err); err != nil {
				return "", err
			}
		}
	}
}

// away reports an error of the store that may pass while people think.
func away(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrLocked)
}

// await returns a channel that is closed when the question is answered in this process.
func (d *Desk) await(id string) <-chan struct{} {
	answered := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = answered
	return answered
}

func (d *Desk) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// askHere brings the answer of the person at the door. It fails if the person cannot be asked, or the answer cannot be kept.
func (d *Desk) askHere(ctx context.Context, q *Question, way Way) error {
	yes, err := way.Ask(ctx, q)
	if err != nil {
		return err
	}
	for {
		err = d.Answer(context.WithoutCancel(ctx), q.ID, Answer{Yes: yes, By: way.By})
		if errors.Is(err, ErrUnknown) {
			return nil // another answer was first
		}
		if !away(err) {
			return err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return err
		}
	}
}

// stranded ends a question whose asker cannot be asked after all, unless there are others.
func (d *Desk) stranded(asking context.Context, q *Question, cause error) error {
	if cause == nil || asking.Err() != nil {
		return nil // there is an answer, or the time is over, which wait sees
	}
	ctx := context.WithoutCancel(asking)
	if ok, err := d.reaches(ctx, q); ok && err == nil {
		return nil
	}
	if err := d.end(ctx, q.ID, stateWithdrawn); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, cause)
}

// give gives a question up, unless it was answered at the last moment and the call is still there.
func (d *Desk) give(ctx context.Context, q *Question) (by string, err error) {
	state, lasting := stateExpired, context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		state = stateWithdrawn
	}
	err = d.end(lasting, q.ID, state)
	switch {
	case ctx.Err() != nil:
		return "", errors.Join(err, ctx.Err())
	case err != nil:
		return "", err
	}
	return d.claim(lasting, q.ID, q)
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
	q.ID, q.Asked = asked.ID, asked.Asked
	err = d.Answer(ctx, way.Reply.ID, Answer{Yes: way.Reply.Yes, By: way.By})
	if err != nil && !errors.Is(err, ErrUnknown) {
		return "", err
	}
	// Somebody else may have answered before: that answer counts.
	by, err := d.claim(ctx, way.Reply.ID, q)
	if errors.Is(err, errWaiting) {
		err = ErrUnknown
	}
	return by, err
}

// May reports whether the person may answer the question, as things are now.
func (d *Desk) May(q *Question, p Person) bool { return p.Operator || d.options.May(q, p) }

// Answer answers a question. It fails with ErrUnknown if the question does not wait any more, with ErrMayNot, or with the store's error.
func (d *Desk) Answer(ctx context.Context, id string, a Answer) error {
	q, err := d.Question(ctx, id)
	if err != nil {
		return err
	}
	if !d.May(q, a.By) {
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
