// Package approval asks people to agree to calls for which the policy requires it.
//
// Queue.Ask asks a Question and waits for the Answer; Prompter says how to reach the caller. Other people answer
// through any frontend or process with Queue.Answer; Queue.Watch and Queue.Waiting show them the questions, which are
// kept in the host's store. A question is bound to caller, session, tool and a digest of the arguments. The first
// answer counts, once or, if Question.Remember is set, for that time for the same call. A question without an answer
// expires, which means no.
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

// Person is a person who answers.
type Person struct {
	Tenant, User string
	// Groups are the groups that the frontend knows.
	Groups []string
	// Operator reports whether the person operates the host and may answer every question.
	Operator bool
}

// Answer is a person's answer.
type Answer struct {
	Yes bool
	By  Person
}

// Options configures a Queue.
type Options struct {
	// May reports whether a person may answer a question. Nil allows only the caller and operators.
	May func(q *Question, p Person) bool
	// Timeout bounds the wait of a question. Zero means 5 minutes.
	Timeout time.Duration
	// Operators reports whether operators watch for questions, also without Heartbeat.
	Operators bool
	// Now is the clock. Nil means the store's (store.Store.Time), which all replicas share.
	Now func() time.Time
}

// Queue asks questions and collects answers. It is safe for concurrent use.
type Queue struct {
	store *store.Store
	// options do not change except for Timeout and Operators, which mu guards.
	options Options

	// mu also guards the fields below.
	mu       sync.Mutex
	watchers map[int]watcher
	next     int
	waiting  map[string]chan struct{} // by question ID; closed when it is answered in this process

	// onOutage, if not nil, is called after each attempt that failed because of an outage of the store.
	onOutage func(attempt string)
}

// watcher notifies people of questions. reaches reports whether they include somebody who can answer a question; nil
// means no.
type watcher struct {
	reaches func(*Question) bool
	notify  func(*Question)
}

// New returns a Queue in s and creates its tables. Errors are the store's.
func New(ctx context.Context, s *store.Store, options *Options) (*Queue, error) {
	if err := s.Migrate(ctx, "approval", migrations...); err != nil {
		return nil, err
	}
	d := &Queue{store: s, watchers: map[int]watcher{}, waiting: map[string]chan struct{}{}}
	if options != nil {
		d.options = *options
	}
	if d.options.May == nil {
		d.options.May = func(q *Question, p Person) bool {
			return p.Operator || p.Tenant == q.Caller.Tenant && p.User == q.Caller.User
		}
	}
	d.SetDefaults(d.options.Timeout, d.options.Operators)
	if d.options.Now == nil {
		d.options.Now = s.Time
	}
	return d, nil
}

// SetDefaults changes Timeout and Operators for later questions.
func (d *Queue) SetDefaults(timeout time.Duration, operators bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.options.Timeout, d.options.Operators = cmp.Or(timeout, 5*time.Minute), operators
}

// Timeout returns how long a question waits.
func (d *Queue) Timeout() time.Duration {
	timeout, _ := d.rules()
	return timeout
}

// rules returns the current Timeout and Operators.
func (d *Queue) rules() (timeout time.Duration, operators bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.options.Timeout, d.options.Operators
}

// Watch calls notify with every question of this process that starts to wait, until stop is called. reaches reports
// whether notify reaches people who can answer a question, which has no ID yet; nil means no. A question that reaches
// neither the caller nor anybody else fails at once. Both functions must be quick.
func (d *Queue) Watch(reaches func(*Question) bool, notify func(*Question)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.next
	d.next++
	d.watchers[id] = watcher{reaches, notify}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, id)
	}
}

func (d *Queue) activeWatchers() []watcher {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.watchers))
}

// Prompter asks the caller in their frontend.
type Prompter struct {
	// Ask asks the caller, By, and returns the answer. It must return when ctx ends. An error says that the caller
	// cannot be asked.
	Ask func(ctx context.Context, q *Question) (yes bool, err error)
	// Fill asks the caller, By, a question of a backend, and returns the answer. It must return when ctx ends. It fails
	// with elicitation.ErrMisfit for an invalid answer, and with another error if the caller cannot be asked. Nil means
	// that nobody can be asked.
	Fill func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error)
	// Later reports whether the caller brings the answer with a second call, in Reply.
	Later bool
	// Reply is the answer.
	Reply *Reply
	// Compare, if not nil, is called once it is certain that a person has to agree. It sets Replaces of the question.
	Compare func(ctx context.Context, q *Question)
	// By is the caller.
	By Person
	// Begin, if not nil, is called before a question is created. If it fails, the question is not, and Ask returns the
	// error.
	Begin func() error
	// Waiting, if not nil, is called with the question's ID when it begins to wait for an answer.
	Waiting func(id string)
}

// Reply answers a question that was returned as a *PendingError.
type Reply struct {
	ID  string
	Yes bool
}

// Ask asks people about a call. It returns nil, and who agreed, if the answer is yes; a remembered yes counts.
//
// It fails with a *RefusedError, ErrExpired, ErrUnreachable, ErrMayNot, ErrOther, ErrChanged, ErrUnknown, a
// *PendingError if the answer comes with a second call, the error of ctx, in which case the question is withdrawn, that
// of Prompter.Begin, or the store's error.
func (d *Queue) Ask(ctx context.Context, q *Question, prompter Prompter) (by string, err error) {
	if by, ok, err := d.remembered(ctx, q); err != nil || ok {
		return by, err
	}
	if prompter.Compare != nil {
		prompter.Compare(ctx, q)
	}
	if prompter.Reply != nil {
		return d.answerReply(ctx, q, prompter)
	}
	self := d.options.May(q, prompter.By)
	if prompter.Ask == nil && !prompter.Later || !self {
		if ok, err := d.reachable(ctx, q); err != nil {
			return "", err
		} else if !ok {
			return "", ErrUnreachable
		}
	}
	if prompter.Begin != nil {
		if err := prompter.Begin(); err != nil {
			return "", err
		}
	}
	if err := d.create(ctx, q); err != nil {
		return "", err
	}
	if prompter.Later && self {
		d.notify(q)
		return "", &PendingError{q}
	}
	return d.waitForAnswer(ctx, q, prompter, self)
}

// IDPrefix starts the ID of every question.
const IDPrefix = "apr_"

// create stores the question.
func (d *Queue) create(ctx context.Context, q *Question) error {
	q.ID = IDPrefix + rand.Text()
	q.Asked = d.options.Now().UTC().Truncate(time.Millisecond)
	timeout, _ := d.rules()
	q.Expires = q.Asked.Add(timeout)
	return d.insert(ctx, q)
}

// reachable reports whether anybody other than the caller can answer q.
func (d *Queue) reachable(ctx context.Context, q *Question) (bool, error) {
	brings := func(w watcher) bool { return w.reaches != nil && w.reaches(q) }
	if _, operators := d.rules(); operators || slices.ContainsFunc(d.activeWatchers(), brings) {
		return true, nil
	}
	return d.operatorsWatch(ctx)
}

func (d *Queue) notify(q *Question) {
	for _, w := range d.activeWatchers() {
		w.notify(q)
	}
}

// poll is the interval at which a waiting question looks for answers of other processes.
const poll = time.Second

// waitForAnswer waits for the first answer.
func (d *Queue) waitForAnswer(ctx context.Context, q *Question, prompter Prompter, self bool) (string, error) {
	answered := d.registerWaiter(q.ID)
	defer d.removeWaiter(q.ID)
	d.notify(q)
	if prompter.Waiting != nil {
		prompter.Waiting(q.ID)
	}
	asking, stop := context.WithTimeout(ctx, q.Expires.Sub(q.Asked))
	callerAnswered := make(chan error, 1)
	if prompter.Ask != nil && self {
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			callerAnswered <- d.askCaller(asking, q, prompter)
		}()
		defer func() { <-asked }()
	}
	defer stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		by, err := d.claimAnswer(context.WithoutCancel(ctx), q)
		if !errors.Is(err, errWaiting) && !d.unavailable(err, "claim") {
			return by, err
		}
		select {
		case <-answered:
			answered = nil // the answer is in the store
		case <-ticker.C:
		case <-asking.Done():
			return d.expire(ctx, q)
		case err := <-callerAnswered:
			if err := d.withdrawUnanswerable(asking, q, err); err != nil {
				return "", err
			}
		}
	}
}

// unavailable reports whether err is an outage of the store that may end while people think.
func (d *Queue) unavailable(err error, attempt string) bool {
	outage := errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrLocked)
	if outage && d.onOutage != nil {
		d.onOutage(attempt)
	}
	return outage
}

// registerWaiter returns a channel that is closed when the question is answered in this process.
func (d *Queue) registerWaiter(id string) <-chan struct{} {
	answered := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = answered
	return answered
}

func (d *Queue) removeWaiter(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// askCaller asks the caller and stores the answer. It fails if the caller cannot be asked or the answer cannot be
// stored.
func (d *Queue) askCaller(ctx context.Context, q *Question, prompter Prompter) error {
	yes, err := prompter.Ask(ctx, q)
	if err != nil {
		return err
	}
	for {
		err = d.Answer(context.WithoutCancel(ctx), q.ID, Answer{Yes: yes, By: prompter.By})
		if errors.Is(err, ErrUnknown) {
			return nil // another answer came first
		}
		if !d.unavailable(err, "answer") {
			return err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return err
		}
	}
}

// withdrawUnanswerable withdraws a question whose caller cannot be asked, unless somebody else can.
func (d *Queue) withdrawUnanswerable(asking context.Context, q *Question, cause error) error {
	if cause == nil || asking.Err() != nil {
		return nil // answered or expired, which waitForAnswer handles
	}
	ctx := context.WithoutCancel(asking)
	if ok, err := d.reachable(ctx, q); ok && err == nil {
		return nil
	}
	if err := d.endWaiting(ctx, q.ID, stateWithdrawn); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, cause)
}

// expire ends a question without an answer. If it was answered at the last moment and ctx has not ended, that answer
// counts.
func (d *Queue) expire(ctx context.Context, q *Question) (by string, err error) {
	state, lasting := stateExpired, context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		state = stateWithdrawn
	}
	err = d.endWaiting(lasting, q.ID, state)
	switch {
	case ctx.Err() != nil:
		return "", errors.Join(err, ctx.Err())
	case err != nil:
		return "", err
	}
	return d.claimAnswer(lasting, q)
}

// answerReply stores the answer that a second call brings.
func (d *Queue) answerReply(ctx context.Context, q *Question, prompter Prompter) (string, error) {
	asked, err := d.Question(ctx, prompter.Reply.ID)
	if err != nil {
		return "", err
	}
	if asked.Binding() != q.Binding() {
		return "", ErrOther
	}
	if q.Differs(asked) {
		return "", ErrChanged
	}
	q.ID, q.Asked = asked.ID, asked.Asked
	err = d.Answer(ctx, prompter.Reply.ID, Answer{Yes: prompter.Reply.Yes, By: prompter.By})
	if err != nil && !errors.Is(err, ErrUnknown) {
		return "", err
	}
	// Another answer may have come first: then that one counts.
	by, err := d.claimAnswer(ctx, q)
	if errors.Is(err, errWaiting) && !d.unavailable(err, "claim") {
		err = ErrUnknown
	}
	return by, err
}

// May reports whether the person may currently answer the question.
func (d *Queue) May(q *Question, p Person) bool { return p.Operator || d.options.May(q, p) }

// Answer answers a question. It fails with ErrUnknown if the question is not waiting, with ErrMayNot, or with the
// store's error.
func (d *Queue) Answer(ctx context.Context, id string, a Answer) error {
	q, err := d.Question(ctx, id)
	if err != nil {
		return err
	}
	if !d.May(q, a.By) {
		return ErrMayNot
	}
	if err := d.recordAnswer(ctx, q, a); err != nil {
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
