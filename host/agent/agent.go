// Package agent is the door of Anthropic's managed agents: it follows their sessions, runs the tools of the catalog that they call as
// custom tools, and sends the results back.
//
// A call is written into the store before it runs and after each step. So it is answered once, by one of several processes, also when
// it was seen twice, and a process that dies in the middle leaves no call behind: the next one runs what had not begun, sends what was
// not sent, and says honestly that the outcome of the rest is not known. Types of the Anthropic SDK stay inside this package.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
)

// Observer counts. Its methods are called concurrently and must be quick. Results are of a fixed set.
type Observer interface {
	// AgentRequest counts a request to the API: "ok", "canceled" or a Kind.
	AgentRequest(operation, result string)
	// AgentCall counts a call that has ended, and how long it took since it was seen: one of Results.
	AgentCall(result string, took time.Duration)
	// AgentSessions counts the sessions that are followed: n are more than before, or fewer.
	AgentSessions(n int)
	// AgentOutdated counts the sessions that have other tools than hako offers: n are more than before, or fewer.
	AgentOutdated(n int)
}

// Results of calls, for the observer.
const (
	ResultAnswered    = "answered"
	ResultLost        = "lost"        // a process had died in the middle of it, which the agent was told
	ResultDropped     = "dropped"     // it was interrupted, answered by another program, or its session ended
	ResultUndelivered = "undelivered" // the API refused the answer
	ResultLeft        = "left"        // an unknown tool, left to another program
)

// Results lists them all.
var Results = []string{ResultAnswered, ResultLost, ResultDropped, ResultUndelivered, ResultLeft}

// Options configures a Runner.
type Options struct {
	Spec Spec
	// Tools returns the tools that a caller may use, and Call runs one of them.
	Tools func(pipeline.Caller) []*catalog.Tool
	Call  func(context.Context, *pipeline.Call) (*pipeline.Result, error)
	// Known reports whether there is a tool of that name, for whomever.
	Known func(name string) bool
	// Lost, if not nil, is told of calls whose outcome is not known since their process died, which no record has therefore.
	Lost func(caller pipeline.Caller, tool string)
	// Store keeps the journal.
	Store *store.Store
	// Locale is the language of the host's texts. Empty means the pipeline's.
	Locale string
	// Proxy is an upstream proxy for the requests to the API. Nil means none; the environment plays no part.
	Proxy *url.URL
	// Observer may be nil.
	Observer Observer
	// Logger receives what happens to sessions and calls. Nil discards it.
	Logger *slog.Logger
}

// Runner runs the tools of managed agents. It is used once.
type Runner struct {
	options Options
	spec    Spec
	tempo   tempo
	after   func(time.Duration) <-chan time.Time // time.After, but in tests
	client  *client
	journal *journal
	custom  *llm.CustomTools
	logger  *slog.Logger

	slots   chan struct{} // of tools that run
	waiting int           // discover's: sessions for which there was no room at the last look
	calls   sync.WaitGroup
	// calling is the context of calls, which outlives that of Run while they drain, and following that of what follows sessions.
	calling, following context.Context
	// serving ends with Retire.
	serving context.Context
	retire  context.CancelFunc
	// fail ends Run.
	fail context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu: those that are followed
	resting  map[string]string   // guarded by mu: stamps of sessions that are not, by ID
	open     map[string]*call    // guarded by mu: those under way, by session and ID
}

// tempo is how long things take. Tests have less patience.
type tempo struct {
	discover time.Duration // between two looks for sessions
	silence  time.Duration // after which a stream is opened anew, since it may be broken
	tick     time.Duration // between two looks for calls that could not be taken yet
	rest     time.Duration // after which a session in which nothing happens is not followed any more
	retry    time.Duration // before a request that failed is made again, for the first time
	inspect  time.Duration // between two looks at the tools of sessions
	later    time.Duration // before a call that another process has is looked at again
	drain    time.Duration // for calls to end when Run's context has
}

var usual = tempo{
	discover: 10 * time.Second, silence: time.Minute, tick: time.Second, rest: 10 * time.Minute, retry: 500 * time.Millisecond,
	inspect: 30 * time.Second, later: 5 * time.Second, drain: 10 * time.Second,
}

const (
	// maxOpen is how many calls are under way at once, those that wait for people included.
	maxOpen = 256
	// maxSessions is how many sessions are followed at once.
	maxSessions = 256
	// maxFound is how many sessions are looked at for each agent: the newest ones.
	maxFound = 1000
)

// New returns a Runner. It fails if Spec.Check does, or with the store's error.
func New(ctx context.Context, o *Options) (*Runner, error) {
	if err := o.Spec.Check(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	r := &Runner{
		options: *o, spec: o.Spec.withDefaults(), tempo: usual, after: time.After,
		sessions: map[string]*session{}, resting: map[string]string{}, open: map[string]*call{},
	}
	if r.options.Logger == nil {
		r.options.Logger = slog.New(slog.DiscardHandler)
	}
	if r.options.Observer == nil {
		r.options.Observer = noObserver{}
	}
	if r.options.Lost == nil {
		r.options.Lost = func(pipeline.Caller, string) {}
	}
	r.serving, r.retire = context.WithCancel(context.Background())
	r.logger = r.options.Logger
	r.slots = make(chan struct{}, r.spec.Parallel)
	r.custom = llm.NewCustomTools(r.logger)
	r.client = newClient(&r.spec, o.Proxy, r.options.Observer.AgentRequest)
	var err error
	r.journal, err = openJournal(ctx, o.Store)
	return r, err
}

type noObserver struct{}

func (noObserver) AgentRequest(string, string)     {}
func (noObserver) AgentCall(string, time.Duration) {}
func (noObserver) AgentSessions(int)               {}
func (noObserver) AgentOutdated(int)               {}

// caller is who calls tools in a session. An empty call is for lists of tools.
func (r *Runner) caller(session, call string) pipeline.Caller {
	return pipeline.Caller{
		Door: pipeline.DoorAgent, Tenant: r.spec.Tenant, User: r.spec.User, Session: session, Locale: r.options.Locale,
		Client: "managed-agents", RequestID: call,
	}
}

// errDone ends Run because all sessions have ended that it was to follow.
var errDone = errors.New("all sessions have ended")

// Run follows the sessions until ctx ends, or until all have ended where none but Spec.Sessions are followed. Then no more calls are
// taken: tools that run have 10 seconds to answer, and what is open after that is left to the next Run over the store. After Retire it
// ends when all tools have that run.
//
// It fails with an Auth error if the API refuses the key, with store.ErrLockLost if other processes may take this one for dead, or with
// the store's error. Other failures are logged, and tried again.
func (r *Runner) Run(ctx context.Context) error {
	held, err := r.journal.begin(ctx)
	if err != nil {
		return err
	}
	defer r.journal.end()
	following, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r.fail, r.following = fail, following
	calling, end := context.WithCancelCause(held)
	defer end(nil)
	r.calling = calling
	defer context.AfterFunc(held, func() { fail(context.Cause(held)) })()
	var followers, inspecting sync.WaitGroup
	for _, s := range r.named() {
		followers.Go(func() { r.follow(following, s) })
	}
	if len(r.spec.Agents)+len(r.spec.Environments) > 0 {
		followers.Go(func() { r.discover(&followers) })
	}
	go func() {
		followers.Wait()
		fail(errDone)
	}()
	inspecting.Go(func() { r.inspect(following) })
	r.tidy(following)
	followers.Wait()
	inspecting.Wait()
	r.drain(end)
	if cause := context.Cause(following); ctx.Err() == nil && !errors.Is(cause, errDone) {
		return cause
	}
	return nil
}

// Retire has Run end without its context, for another Runner over the store that takes its place: no more calls are taken, those that have
// no effect yet are left to the other one, and the sessions of tools that run are followed until those have answered.
func (r *Runner) Retire() {
	r.retire()
	r.leaveUnstarted()
}

// retired reports whether Retire was called.
func (r *Runner) retired() bool { return r.serving.Err() != nil }

// tidyTime is how often old calls are taken out of the journal.
const tidyTime = time.Hour

// tidy keeps the journal small until ctx ends.
func (r *Runner) tidy(ctx context.Context) {
	for {
		if err := r.journal.forget(ctx); err != nil && ctx.Err() == nil {
			r.logger.Error("the journal of calls could not be tidied", "err", err)
		}
		if sleep(ctx, tidyTime) != nil {
			return
		}
	}
}

// leaveUnstarted ends the calls that have no effect yet.
func (r *Runner) leaveUnstarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.halt()
	}
}

// drain lets calls end whose tools run. The others have no effect yet, and end at once.
func (r *Runner) drain(end context.CancelCauseFunc) {
	r.leaveUnstarted()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.calls.Wait()
	}()
	select {
	case <-ended:
	case <-r.after(r.tempo.drain):
		r.logger.Warn("calls had not ended when hako had to: the agents are told at the next start")
		end(errEnding)
		<-ended
	}
}

// sleep waits for d, or until ctx ends: then it returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
