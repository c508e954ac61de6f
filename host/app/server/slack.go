package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/lang"
)

// slackBot is the bot in the configured workspaces, with the engine that answers. newSlackBot makes one.
type slackBot struct {
	bot         *slackbot.Bot
	closeEngine func() error
}

// newSlackBot makes the bot of the configured workspaces; nil if there are none. The caller closes it.
func newSlackBot(
	ctx context.Context, c *config.Config, h *host.Host, g *Governance, o *observability, logger *slog.Logger,
) (*slackBot, error) {
	if len(c.Slack) == 0 {
		return nil, nil
	}
	if len(c.LLM.Models) == 0 {
		return nil, errors.New("configuration: slack.workspaces needs a model: add one to llm.models")
	}
	models, err := NewModels(c, logger, o.metrics.ModelAsked)
	if err != nil {
		return nil, err
	}
	engine, err := NewEngine(ctx, c, models, h, g.Store, logger, o.observeChat)
	if err != nil {
		return nil, err
	}
	bot, err := slackbot.New(ctx, &slackbot.Options{
		Workspaces: c.Slack, Engine: engine, Store: g.Store, Approvals: g.Approvals, Tools: h.Tools,
		Usage: slackUsage(engine, c.LLM.Currency), Rate: engine.Rate, Locale: c.Locale, Proxy: c.ProxyURL(),
		Tracer: o.tracer, Observer: o.metrics, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configuration: %w", err), engine.Close())
	}
	return &slackBot{bot, sync.OnceValue(func() error {
		defer models.CloseIdleConnections()
		return engine.Close()
	})}, nil
}

// slackUsage returns a function that returns what somebody has used today.
func slackUsage(engine *chat.Engine, currency string) func(context.Context, pipeline.Caller) (string, error) {
	return func(ctx context.Context, caller pipeline.Caller) (string, error) {
		today, err := engine.Today(ctx, caller)
		format := "Used today: %d tokens%s."
		if lang.Japanese(caller.Locale) {
			format = "本日の使用量: %d トークン%s。"
		}
		return fmt.Sprintf(format, today.Tokens, today.Price(currency)), err
	}
}

// Run answers until ctx ends. A bot that was replaced returns when it has answered the turns in progress.
func (b *slackBot) Run(ctx context.Context) error { return errors.Join(b.bot.Run(ctx), b.Close()) }

// Close waits for the turns in progress. It may be called twice.
func (b *slackBot) Close() error { return b.closeEngine() }

// slackFrontend is the part with the bot of the configuration in force, and with earlier bots that still finish turns.
type slackFrontend struct {
	server *Server
	now    atomic.Pointer[slackBot] // nil: the configuration has no workspaces

	// mu guards the fields below.
	mu sync.Mutex
	// launch runs a bot. Nil: the part does not run, and new bots wait in pending.
	launch  func(*slackBot)
	pending []*slackBot
}

func (f *slackFrontend) start(ctx context.Context) error {
	bot, err := f.newBot(ctx, f.server.Config)
	if err != nil {
		return err
	}
	f.replace(bot)
	return nil
}

func (f *slackFrontend) newBot(ctx context.Context, c *config.Config) (*slackBot, error) {
	s := f.server
	return newSlackBot(ctx, c, s.plugins.host.Load(), s.governance.Governance, s.observability, s.Logger)
}

// replace puts a bot, or none, in the place of the current one, which finishes its turns.
func (f *slackFrontend) replace(bot *slackBot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case bot == nil:
	case f.launch == nil:
		f.pending = append(f.pending, bot)
	default:
		f.launch(bot)
	}
	before := f.now.Swap(bot)
	switch {
	case before == nil:
	case bot == nil:
		before.bot.Retire(nil)
	default:
		before.bot.Retire(bot.bot)
	}
}

func (f *slackFrontend) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	f.mu.Lock()
	f.launch = func(bot *slackBot) { group.Go(func() error { return bot.Run(ctx) }) }
	for _, bot := range f.pending {
		f.launch(bot)
	}
	f.pending = nil
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.launch = nil
	f.mu.Unlock()
	return group.Wait()
}

// stop closes bots that never ran.
func (f *slackFrontend) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, bot := range f.pending {
		errs = append(errs, bot.Close())
	}
	f.pending = nil
	return errors.Join(errs...)
}

func (*slackFrontend) keys() []string {
	return []string{"slack", "llm", "chat", "locale", "outbound.proxy"}
}

func (f *slackFrontend) prepare(ctx context.Context, next *config.Config) (*change, error) {
	bot, err := f.newBot(ctx, next)
	if err != nil {
		return nil, err
	}
	c := silently(func() { f.replace(bot) })
	if bot != nil {
		c.discard = func() { _ = bot.Close() }
	}
	return c, nil
}

// statuses returns the connections of the bot's workspaces.
func (f *slackFrontend) statuses() []slackbot.Status {
	if bot := f.now.Load(); bot != nil {
		return bot.bot.Status()
	}
	return nil
}

// handler serves requests of Slack. Without a bot, others serves them.
func (f *slackFrontend) handler(others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bot := f.now.Load(); bot != nil {
			bot.bot.Handler().ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
