// Package agent is the frontend for Anthropic's managed agents: a Runner follows their sessions, runs the catalog's
// tools that they call as custom tools, and sends the results. A Publisher updates the tool definitions of agents.
//
// New returns a Runner and Run runs it. Every call is recorded in a journal in the store before it runs and after each
// step. So a call is answered once, by one of several processes, even if its event arrives twice. When a process dies,
// another one takes over its calls: it runs those that had not started, sends answers that were not sent, and reports
// an unknown outcome for the others. The tool runner of Anthropic's SDK is not used: it runs one tool at a time, for
// two minutes at most, and forgets everything at a restart.
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
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/retry"
)

// Observer receives metrics. Its methods are called concurrently and must not block. Results are from a fixed set.
type Observer interface {
	// AgentRequest counts a request to the API. The result is "ok", "canceled" or a Kind.
	AgentRequest(operation, result string)
	// AgentCall counts an ended call with one of Results and the time since its event arrived.
	AgentCall(result string, took time.Duration)
	// AgentSessions adds n, which may be negative, to the number of followed sessions.
	AgentSessions(n int)
	// AgentOutdated adds n, which may be negative, to the number of sessions whose tools differ from hako's.
	AgentOutdated(n int)
}

// Results of calls for the Observer.
const (
	ResultAnswered    = "answered"
	ResultLost        = "lost"        // its process died while the tool ran; the agent was told
	ResultDropped     = "dropped"     // interrupted, answered by another program, or the session ended
	ResultUndelivered = "undelivered" // the API refused the answer
	ResultLeft        = "left"        // an unknown tool, left to another program
)

// Results lists them all.
var Results = []string{ResultAnswered, ResultLost, ResultDropped, ResultUndelivered, ResultLeft}

// Options configures a Runner.
type Options struct {
	Spec Spec
	// Tools returns the tools that a caller may use. Call runs one of them.
	Tools func(pipeline.Caller) []*catalog.Tool
	Call  func(context.Context, *pipeline.Call) (*pipeline.Result, error)
	// Known reports whether a tool of that name exists for any caller.
	Known func(name string) bool
	// Lost, if not nil, is called for calls with an unknown outcome because their process died. They have no audit
	// record.
	Lost func(caller pipeline.Caller, tool string)
	// Store keeps the journal.
	Store *store.Store
	// Locale is the language of the host's texts. Empty means the pipeline's default.
	Locale string
	// Grace returns how long Run waits for running tools after its context has ended. Nil means 10 seconds.
	Grace func() time.Duration
	// Proxy is an upstream proxy for requests to the API. Nil means none. The environment is ignored.
	Proxy *url.URL
	// Observer may be nil.
	Observer Observer
	// Logger receives events of sessions and calls. Nil discards them.
	Logger *slog.Logger
}

// Runner runs the tools of managed agents. Run may be called once.
type Runner struct {
	options Options
	spec    Spec
	timing  timing
	after   func(time.Duration) <-chan time.Time // time.After, but in tests
	client  *client
	journal *journal
	custom  *llm.CustomTools
	logger  *slog.Logger

	slots   chan struct{} // of tools that run
	waiting int           // discover's: sessions for which there was no room at the last look
	calls   sync.WaitGroup
	// calling is the context of calls, which outlives Run's while they drain. following is the context of followers.
	calling, following context.Context
	// serving ends with Retire.
	serving context.Context
	retire  context.CancelFunc
	// fail ends Run.
	fail context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu: followed sessions
	resting  map[string]string   // guarded by mu: stamps of sessions that are not followed, by ID
	open     map[string]*call    // guarded by mu: calls in progress, by session and ID
}

// timing has intervals and timeouts, which tests shorten.
type timing struct {
	discover time.Duration // interval of looking for sessions
	silence  time.Duration // idle time after which a stream is reopened, because it may be broken
	tick     time.Duration // interval of trying to start waiting calls
	rest     time.Duration // idle time after which a session is no longer followed
	retry    time.Duration // first wait before a failed request is retried
	inspect  time.Duration // interval of inspecting the tools of sessions
	later    time.Duration // wait before trying again to claim a call of another process
}

var defaultTiming = timing{
	discover: 10 * time.Second, silence: time.Minute, tick: time.Second, rest: 10 * time.Minute,
	retry: 500 * time.Millisecond, inspect: 30 * time.Second, later: 5 * time.Second,
}

const (
	// maxOpen bounds the calls in progress, including those that wait for people.
	maxOpen = 256
	// maxSessions bounds the followed sessions.
	maxSessions = 256
	// maxFound bounds the sessions listed for each agent, newest first.
	maxFound = 1000
)

// New returns a Runner. It fails if Spec.Check does, or with the store's error.
func New(ctx context.Context, o *Options) (*Runner, error) {
	if err := o.Spec.Check(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	r := &Runner{
		options: *o, spec: o.Spec.withDefaults(), timing: defaultTiming, after: time.After,
		sessions: map[string]*session{}, resting: map[string]string{}, open: map[string]*call{},
	}
	if r.options.Logger == nil {
		r.options.Logger = slog.New(slog.DiscardHandler)
	}
	if r.options.Observer == nil {
		r.options.Observer = noObserver{}
	}
	if r.options.Grace == nil {
		r.options.Grace = func() time.Duration { return 10 * time.Second }
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

// caller returns the caller for a session. call is empty for listing tools.
func (r *Runner) caller(session, call string) pipeline.Caller {
	return pipeline.Caller{
		Frontend: pipeline.FrontendAgent, Tenant: r.spec.Tenant, User: r.spec.User, Session: session,
		Locale: r.options.Locale,
		Client: "managed-agents", RequestID: call,
	}
}

// errDone ends Run because all sessions to follow have ended.
var errDone = errors.New("all sessions have ended")

// Run follows the sessions until ctx ends, or until all have ended if only Spec.Sessions are followed. It then accepts
// no more calls and gives running tools Options.Grace; remaining calls are left to the next Run over the store. After
// Retire it returns when all running tools have ended.
//
// It fails with an Auth error if the API refuses the key, with store.ErrLockLost if other processes may consider this
// one dead, or with the store's error. Other failures are logged and retried.
func (r *Runner) Run(ctx context.Context) error {
	held, err := r.journal.begin(ctx)
	if err != nil {
		return err
	}
	defer r.journal.end()
	defer r.client.http.CloseIdleConnections()
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

// Retire makes Run return without cancelling its context, because another Runner over the store replaces it. It accepts
// no more calls, leaves those that have not started their tool to the other Runner, and follows the sessions of running
// tools until those have answered.
func (r *Runner) Retire() {
	r.retire()
	r.leaveUnstarted()
}

// retired reports whether Retire was called.
func (r *Runner) retired() bool { return r.serving.Err() != nil }

// tidyTime is the interval of removing old calls from the journal.
const tidyTime = time.Hour

// tidy removes old calls from the journal until ctx ends.
func (r *Runner) tidy(ctx context.Context) {
	for {
		if err := r.journal.forget(ctx); err != nil && ctx.Err() == nil {
			r.logger.Error("the journal of calls could not be tidied", "err", err)
		}
		if retry.Wait(ctx, tidyTime) != nil {
			return
		}
	}
}

// leaveUnstarted ends the calls whose tool has not started.
func (r *Runner) leaveUnstarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.halt()
	}
}

// drain waits for calls whose tool runs, and ends the others at once.
func (r *Runner) drain(end context.CancelCauseFunc) {
	r.leaveUnstarted()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.calls.Wait()
	}()
	grace := r.options.Grace()
	select {
	case <-ended:
	case <-r.after(grace):
		r.logger.Warn("calls were still running at shutdown: agents get an error result at the next start",
			"grace", grace)
		end(errEnding)
		<-ended
	}
}
