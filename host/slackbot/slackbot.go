// Package slackbot is the frontend in Slack: mentions, direct messages and threads become turns of a conversation,
// answers are streamed back with a card for each tool call, and people approve calls with buttons.
//
// What Slack tells comes over Socket Mode or as signed HTTP requests. It is written down in the store before it is
// acknowledged, so that it is handled once, by one of several replicas, and not lost when a process ends. Types of
// slack-go stay inside this package.
package slackbot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
)

// Engine answers turns. *chat.Engine does.
type Engine interface {
	Turn(ctx context.Context, t *chat.Turn) (*chat.Answer, error)
}

// Approvals is where questions to people wait. *approval.Queue is one.
type Approvals interface {
	Watch(reaches func(*approval.Question) bool, tell func(*approval.Question)) (stop func())
	Answer(ctx context.Context, id string, a approval.Answer) error
	Question(ctx context.Context, id string) (*approval.Question, error)
	Outcome(ctx context.Context, id string) (outcome, by string, err error)
	Withdraw(ctx context.Context, id string) error
}

// Observer counts. Its methods are called concurrently and must be quick. Every argument is one of a fixed set.
type Observer interface {
	// SlackEvent counts what Slack told: its type, and what became of it.
	SlackEvent(kind, result string)
	// SlackRequest counts requests to the Web API.
	SlackRequest(method, result string)
	// SlackRateLimited counts those that Slack put off.
	SlackRateLimited(method string)
	// SlackRollover counts streamed answers that went on in another message.
	SlackRollover()
}

// Workspace is one Slack workspace that the bot's app is installed in.
type Workspace struct {
	// Name is what logs call it, and a part of the path of its requests over HTTP.
	Name string
	// Tenant is the one that its people call tools for.
	Tenant string
	// BotToken is the bot's ("xoxb-…").
	BotToken credential.Source
	// AppToken is for Socket Mode ("xapp-…"), SigningSecret for the Events API over HTTP. One of them is set.
	AppToken, SigningSecret credential.Source
	// APIURL is where the Web API is. Empty means Slack's own. It is for stand-ins.
	APIURL string
	// Users, Groups (handles of user groups) and Channels are those that may use the bot. An empty Channels allows all,
	// and so do Users and Groups if both are empty. Direct messages need no channel.
	Users, Groups, Channels []string
	// Partners are other workspaces whose people may use the bot in channels that are shared with them (Slack Connect),
	// by the ID of their team, with the tenant that they call tools for. People of workspaces that are not among them
	// are refused.
	Partners map[string]string
	// Approvals is where people are asked: ApproveInThread, ApproveInDM, or the ID of a channel, which then gets the
	// questions of other frontends as well. Empty means ApproveInThread.
	Approvals string
}

var teamID = regexp.MustCompile(`^[TE][A-Z0-9]{2,}$`)

// Places of questions, besides a channel.
const (
	ApproveInThread = "thread"
	ApproveInDM     = "dm"
)

// Options configures a Bot.
type Options struct {
	Workspaces []Workspace
	Engine     Engine
	// Store keeps what was told and not yet answered.
	Store *store.Store
	// Approvals may be nil: then nobody is asked in Slack.
	Approvals Approvals
	// Tools returns the tools that a caller may use, for /hako tools. It may be nil.
	Tools func(pipeline.Caller) []*catalog.Tool
	// Usage returns what a caller has used, in the caller's language, for /hako usage. It may be nil.
	Usage func(ctx context.Context, caller pipeline.Caller) (string, error)
	// Rate keeps what a caller thinks of an answer, by its chat.Answer.Number: (*chat.Engine).Rate. It may be nil:
	// nobody is asked then.
	Rate func(ctx context.Context, caller pipeline.Caller, conversation string, answer int64, good bool) error
	// Locale is for people whose language Slack does not tell. Empty means "en".
	Locale string
	// Turns is how many turns run at once; more wait. One that has asked people does not count any more. Zero means 64.
	Turns int
	// Proxy is the one for requests to Slack. Nil means none.
	Proxy *url.URL
	// Tracer makes a span of every message that is answered. Nil makes none.
	Tracer *trace.Tracer
	// Observer may be nil, Logger too.
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

// silent counts nothing.
type silent struct{}

func (silent) SlackEvent(string, string)   {}
func (silent) SlackRequest(string, string) {}
func (silent) SlackRateLimited(string)     {}
func (silent) SlackRollover()              {}

// Bot is the frontend. Make one with New; its methods are safe for concurrent use.
type Bot struct {
	options    Options
	workspaces []*workspace
	journal    *journal
	lanes      lanes
	questions  questions
	// streamTime is how long a streamed message may stay open.
	streamTime time.Duration
	// work are goroutines that Run waits for.
	work sync.WaitGroup
	// ctx is Run's, and begun says that it is set: what comes over HTTP before is turned away.
	ctx   context.Context
	begun chan struct{}
	// retired ends when Retire is called, with successor.
	retired   context.Context
	retire    context.CancelFunc
	successor *Bot
}

// New returns a Bot and makes its tables. It asks Slack nothing. It fails for workspaces that contradict themselves or
// each other, and with the store's errors.
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
	b.lanes.running = map[string]*turn{}
	b.lanes.waiting = map[string][]*message{}
	b.lanes.slots = make(chan struct{}, b.options.Turns)
	b.questions.wake = map[string]chan struct{}{}
	for _, w := range b.options.Workspaces {
		b.workspaces = append(b.workspaces, newWorkspace(b, w))
	}
	return b, nil
}

// checkWorkspaces holds the rules of Workspace.
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

// Check returns what is wrong with w: a missing name or token, both ways to be told what happens or neither, or an
// address that tokens must not be sent to.
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
		if !teamID.MatchString(team) {
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

// Run connects to Slack and answers until ctx ends. Then it ends the turns that run, with a note to whoever waits, and
// returns. What goes wrong with Slack, revoked tokens included, is logged, and tried again later: it is no reason to
// return.
func (b *Bot) Run(ctx context.Context) error {
	held, err := b.journal.live(ctx)
	if err != nil {
		return err
	}
	defer b.journal.end()
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
		defer context.AfterFunc(b.retired, unwatch)() // the other bot asks
	}
	running, end := context.WithCancel(ctx)
	defer end()
	group, ctx := errgroup.WithContext(running)
	group.Go(func() error { return b.stayAlive(ctx, held) })
	group.Go(func() error { return b.tend(ctx) })
	group.Go(func() error {
		defer end()
		return b.take(ctx)
	})
	err = group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// take takes what comes from Slack until ctx ends. Once the bot is retired it waits for the turns that are under way.
func (b *Bot) take(ctx context.Context) error {
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
	go func() { // ends with ctx at the latest, as all work does
		b.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	return nil
}

// Retire has another bot take its place that runs already, or none if that is nil: once the other one is connected,
// this one takes in nothing more, and Run returns when the turns under way have been answered. It is called once.
func (b *Bot) Retire(successor *Bot) {
	b.successor = successor
	b.retire()
}

// handOver is how long a bot waits for the one that takes its place to be connected.
const handOver = 15 * time.Second

// connected waits until Slack has let all workspaces in, for some time. Nobody waits for a nil Bot.
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

// Handler takes what Slack sends over HTTP to the workspaces with a signing secret, at /slack/NAME: events, clicks and
// slash commands.
func (b *Bot) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, w := range b.workspaces {
		if !w.SigningSecret.IsZero() {
			mux.HandleFunc("POST /slack/"+w.Name, w.serveHTTP)
		}
	}
	return mux
}
