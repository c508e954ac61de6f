// Package slackbot is the Slack frontend. Mentions, direct messages and threads become turns of a conversation. Answers
// are streamed back with a card for each tool call. People approve calls with buttons.
//
// New returns a Bot for one or more Workspaces, and Run connects it. Events arrive over Socket Mode or as signed HTTP
// requests. An event is stored before it is acknowledged, so that one of several replicas handles it once, and it
// survives the end of a process. Types of slack-go stay inside this package.
package slackbot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Engine answers turns, like *chat.Engine.
type Engine interface {
	Turn(ctx context.Context, t *chat.Turn) (*chat.Answer, error)
}

// Approvals has the questions to people, like *approval.Queue.
type Approvals interface {
	Watch(reaches func(*approval.Question) bool, tell func(*approval.Question)) (stop func())
	Answer(ctx context.Context, id string, a approval.Answer) error
	Question(ctx context.Context, id string) (*approval.Question, error)
	Outcome(ctx context.Context, id string) (outcome, by string, err error)
	Withdraw(ctx context.Context, id string) error
}

// Observer receives counts. Its methods are called concurrently and must be quick. Each argument is from a fixed set.
type Observer interface {
	// SlackEvent counts an event by type and result.
	SlackEvent(kind, result string)
	// SlackRequest counts a request to the Web API.
	SlackRequest(method, result string)
	// SlackRateLimited counts a rate-limited request.
	SlackRateLimited(method string)
	// SlackRollover counts an answer that continues in another message.
	SlackRollover()
}

// Workspace is a Slack workspace with the bot's app.
type Workspace struct {
	// Name is the workspace's name in logs and in the path of its HTTP requests.
	Name string
	// Tenant is the tenant of calls by its people.
	Tenant string
	// BotToken is the bot's token ("xoxb-…").
	BotToken secret.Source
	// AppToken is for Socket Mode ("xapp-…"), SigningSecret for the Events API over HTTP. Exactly one of them is set.
	AppToken, SigningSecret secret.Source
	// APIURL is the address of the Web API. Empty means Slack's. Fakes have others.
	APIURL string
	// Users, Groups (handles of user groups) and Channels may use the bot. Empty Channels allow all channels; empty
	// Users and Groups allow everybody. Direct messages need no channel.
	Users, Groups, Channels []string
	// Partners are other workspaces whose people may use the bot in shared channels (Slack Connect): team IDs with the
	// tenants of their calls. People of other workspaces are refused.
	Partners map[string]string
	// Approvals chooses the place of questions: ApproveInThread, ApproveInDM, or the ID of a channel, which then also
	// gets the questions of other frontends. Empty means ApproveInThread.
	Approvals string
}

var teamID = lazyregexp.New(`^[TE][A-Z0-9]{2,}$`)

// Values of Workspace.Approvals, besides channels.
const (
	ApproveInThread = "thread"
	ApproveInDM     = "dm"
)

// Options configures a Bot.
type Options struct {
	Workspaces []Workspace
	Engine     Engine
	// Store has the journal of events, turns and questions.
	Store *store.Store
	// Approvals may be nil: then no questions are posted.
	Approvals Approvals
	// Tools returns the tools that a caller may use, for /hako tools. It may be nil.
	Tools func(pipeline.Caller) []*catalog.Tool
	// Usage returns a caller's usage, in the caller's language, for /hako usage. It may be nil.
	Usage func(ctx context.Context, caller pipeline.Caller) (string, error)
	// Rate stores a caller's rating of an answer, identified by chat.Answer.Number: (*chat.Engine).Rate. Nil disables
	// ratings.
	Rate func(ctx context.Context, caller pipeline.Caller, conversation string, answer int64, good bool) error
	// Locale is for people whose language is unknown. Empty means "en".
	Locale string
	// Turns bounds the concurrent turns; others wait. A turn that waits for people does not count. Zero means 64.
	Turns int
	// Proxy is the proxy for requests to Slack. Nil means none.
	Proxy *url.URL
	// Tracer creates a span for each answered message. Nil creates none.
	Tracer *trace.Tracer
	// Observer and Logger may be nil.
	Observer Observer
	Logger   *slog.Logger
}

func (o *Options) fill() {
	if o.Locale == "" {
		o.Locale = "en"
	}
	if o.Turns == 0 {
		o.Turns = 64
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// silent is an Observer that counts nothing.
type silent struct{}

func (silent) SlackEvent(string, string)   {}
func (silent) SlackRequest(string, string) {}
func (silent) SlackRateLimited(string)     {}
func (silent) SlackRollover()              {}

// Bot is the frontend, made by New. It is safe for concurrent use.
type Bot struct {
	options    Options
	workspaces []*workspace
	journal    *journal
	queues     queues
	questions  questions
	// streamTime bounds the time for which a streamed message stays open.
	streamTime time.Duration
	// work has the goroutines that Run waits for.
	work sync.WaitGroup
	// ctx is Run's context. begun reports whether it is set: earlier HTTP requests are refused.
	ctx   context.Context
	begun chan struct{}
	// retired ends when Retire is called with successor.
	retired   context.Context
	retire    context.CancelFunc
	successor *Bot
}

// New returns a Bot and creates its tables. It makes no requests to Slack. It fails for invalid or conflicting
// workspaces, and with the store's errors.
func New(ctx context.Context, options *Options) (*Bot, error) {
	b := &Bot{options: *options, begun: make(chan struct{}), streamTime: streamTime}
	b.options.fill()
	b.retired, b.retire = context.WithCancel(context.Background())
	if err := checkWorkspaces(b.options.Workspaces); err != nil {
		return nil, err
	}
	var err error
	if b.journal, err = openJournal(ctx, b.options.Store); err != nil {
		return nil, err
	}
	b.queues.running = map[string]*turn{}
	b.queues.waiting = map[string][]*message{}
	b.queues.slots = make(chan struct{}, b.options.Turns)
	b.questions.wake = map[string]chan struct{}{}
	for _, w := range b.options.Workspaces {
		b.workspaces = append(b.workspaces, newWorkspace(b, w))
	}
	return b, nil
}

// checkWorkspaces checks the rules of Workspace and those across workspaces.
func checkWorkspaces(list []Workspace) error {
	names := map[string]bool{}
	for _, w := range list {
		if err := w.Check(); err != nil {
			return fmt.Errorf("slack workspace %q: %w", w.Name, err)
		}
		if names[w.Name] {
			return fmt.Errorf("two slack workspaces have the name %q: give each its own", w.Name)
		}
		names[w.Name] = true
	}
	return nil
}

// Check returns an error for a missing name or token, both or neither of AppToken and SigningSecret, and an APIURL that
// tokens must not be sent to.
func (w Workspace) Check() error {
	if w.Name == "" || url.PathEscape(w.Name) != w.Name {
		return errors.New("its name must be made of letters, digits and -._~, for it is part of a URL")
	}
	if err := w.BotToken.Check(); err != nil {
		return fmt.Errorf("botToken %w", err)
	}
	if w.AppToken.IsZero() == w.SigningSecret.IsZero() {
		return errors.New("it needs either appToken, for Socket Mode, or signingSecret, for requests over HTTP")
	}
	for team, tenant := range w.Partners {
		if !teamID().MatchString(team) {
			return fmt.Errorf("partners: %q is not the ID of a workspace: those begin with T", team)
		}
		if tenant == "" || tenant == w.Tenant {
			return fmt.Errorf("partners: %s needs a tenant of its own, and has %q", team, tenant)
		}
	}
	if w.APIURL == "" {
		return nil
	}
	return checkURL(w.APIURL)
}

// Run connects to Slack and answers until ctx ends. Then it ends the running turns, with a notice in their threads, and
// returns. Problems with Slack, such as revoked tokens, are logged and retried; Run does not return because of them.
func (b *Bot) Run(ctx context.Context) error {
	held, err := b.journal.live(ctx)
	if err != nil {
		return err
	}
	defer b.journal.end()
	defer func() { // after all work
		for _, w := range b.workspaces {
			w.client.http.CloseIdleConnections()
		}
	}()
	writing, written := context.WithCancel(context.WithoutCancel(ctx))
	var journal sync.WaitGroup
	journal.Go(func() { b.journal.commit(writing) })
	defer journal.Wait()
	defer written()
	defer b.work.Wait()
	b.ctx = ctx
	close(b.begun)
	if b.options.Approvals != nil {
		unwatch := b.options.Approvals.Watch(b.reaches, b.asked)
		defer unwatch()
		defer context.AfterFunc(b.retired, unwatch)() // the successor posts questions
	}
	running, end := context.WithCancel(ctx)
	defer end()
	group, ctx := errgroup.WithContext(running)
	group.Go(func() error { return b.stayAlive(ctx, held) })
	group.Go(func() error { return b.maintain(ctx) })
	group.Go(func() error {
		defer end()
		return b.receive(ctx)
	})
	err = group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive handles events from Slack until ctx ends. After Retire, it waits for the running turns.
func (b *Bot) receive(ctx context.Context) error {
	taking, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(b.retired, func() {
		b.successor.connected(ctx)
		stop()
	})()
	group, taking := errgroup.WithContext(taking)
	for _, w := range b.workspaces {
		group.Go(func() error { return w.run(taking) })
	}
	if err := group.Wait(); err != nil || ctx.Err() != nil {
		return err
	}
	idle := make(chan struct{})
	go func() { // ends with ctx at the latest, like all work
		b.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	return nil
}

// Retire replaces the bot with successor, which already runs, or with nothing if successor is nil. Once successor is
// connected, this bot accepts no more events, and Run returns when the running turns have ended. Retire is called once.
func (b *Bot) Retire(successor *Bot) {
	b.successor = successor
	b.retire()
}

// handOver bounds the wait for the successor's connection.
const handOver = 15 * time.Second

// connected waits, for a limited time, until all workspaces are connected. It returns at once for a nil Bot.
func (b *Bot) connected(ctx context.Context) {
	if b == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	for _, w := range b.workspaces {
		select {
		case <-w.open:
		case <-ctx.Done():
			return
		}
	}
}

// Handler serves Slack's HTTP requests to the workspaces with a signing secret at /slack/NAME: events, clicks and slash
// commands.
func (b *Bot) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, w := range b.workspaces {
		if !w.SigningSecret.IsZero() {
			mux.HandleFunc("POST /slack/"+w.Name, w.serveHTTP)
		}
	}
	return mux
}
