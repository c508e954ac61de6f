package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/slackbot"
	"github.com/hako-run/hako/internal/config"
)

func (a *app) slackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slack",
		Short: "Set up the bot in Slack",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.slackManifestCommand())
	return cmd
}

func (a *app) slackManifestCommand() *cobra.Command {
	var o slackbot.ManifestOptions
	var base, workspace string
	socket := false
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the app manifest that makes the bot's app in Slack",
		Long: `Print the app manifest of the bot. Paste it at https://api.slack.com/apps (Create New App, From a manifest): it makes the app with
scopes, events, buttons, the slash command and the agent view. Without --url the app uses Socket Mode, for which nothing has to be
reachable from outside.`,
		Example: `  hako slack manifest
  hako slack manifest --url https://hako.example.com --workspace acme`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if base != "" {
				at, err := slackURL(base, workspace)
				if err != nil {
					return err
				}
				o.URL = at
			}
			text, err := slackbot.Manifest(o)
			if err != nil {
				return err
			}
			err = printf(a.data(), "%s\n", block(text))
			return err
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "hako", "what the bot is called")
	cmd.Flags().BoolVar(&socket, "socket", false, "use Socket Mode, which is the default")
	cmd.Flags().StringVar(&base, "url", "", "the https URL where Slack reaches hako serve")
	cmd.Flags().StringVar(&workspace, "workspace", "main", "the name of the workspace in hako.yaml, for --url")
	cmd.MarkFlagsMutuallyExclusive("socket", "url")
	return cmd
}

// slackURL is where a workspace's requests go, below the URL of hako serve.
func slackURL(base, workspace string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("--url %s is not an https URL such as https://hako.example.com: Slack sends to no other",
			base)
	}
	return u.JoinPath("slack", workspace).String(), nil
}

// slackFrontend is the bot with its engine.
type slackFrontend struct {
	bot         *slackbot.Bot
	closeEngine func() error
}

// newSlackFrontend makes the bot of the configured workspaces; nil if there are none. The caller closes it.
func newSlackFrontend(ctx context.Context, c *config.Config, h *host.Host, g *government, watched *observation,
	logger *slog.Logger) (*slackFrontend, error) {
	if len(c.Slack) == 0 {
		return nil, nil
	}
	if len(c.LLM.Models) == 0 {
		return nil, errors.New("configuration: slack.workspaces needs a model to talk with: name one in llm.models")
	}
	models, err := newModels(c, logger, watched.numbers.ModelAsked)
	if err != nil {
		return nil, err
	}
	engine, err := newEngine(ctx, c, models, h, g.store, watched, logger)
	if err != nil {
		return nil, err
	}
	bot, err := slackbot.New(ctx, &slackbot.Options{
		Workspaces: c.Slack, Engine: engine, Store: g.store, Approvals: g.approvals, Tools: toolsOf(h),
		Usage: slackUsage(c, engine), Rate: engine.Rate, Locale: c.Locale,
		Proxy: c.ProxyURL(), Tracer: watched.tracer, Observer: watched.numbers, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configuration: %w", err), engine.Close())
	}
	return &slackFrontend{bot, sync.OnceValue(engine.Close)}, nil
}

// slackUsage says what somebody has used today.
func slackUsage(c *config.Config, engine *chat.Engine) func(context.Context, pipeline.Caller) (string, error) {
	return func(ctx context.Context, caller pipeline.Caller) (string, error) {
		today, err := engine.Today(ctx, caller)
		format := "Used today: %d tokens%s."
		if strings.HasPrefix(caller.Locale, "ja") {
			format = "本日の使用量: %d トークン%s。"
		}
		return fmt.Sprintf(format, today.Tokens, price(today, c.LLM.Currency)), err
	}
}

// run answers until ctx ends, or until the turns under way are answered once the bot is retired.
func (d *slackFrontend) run(ctx context.Context) error {
	return errors.Join(d.bot.Run(ctx), d.close())
}

// close waits for the turns under way. It may be called twice.
func (d *slackFrontend) close() error { return d.closeEngine() }

// slackFrontends are the frontend of the configuration in force, if there is one, and those before it that finish what
// they have begun. A nil slackFrontends does nothing.
type slackFrontends struct {
	// make makes a frontend of a configuration; nil if that has none.
	make func(context.Context, *config.Config) (*slackFrontend, error)
	now  atomic.Pointer[slackFrontend]

	// mu guards what follows.
	mu sync.Mutex
	// start runs a frontend; nil while run does not. waiting are frontends that do not run.
	start   func(*slackFrontend)
	waiting []*slackFrontend
}

// newSlackFrontends makes the frontend of the configuration. The caller closes it.
func newSlackFrontends(ctx context.Context, c *config.Config,
	make func(context.Context, *config.Config) (*slackFrontend, error)) (*slackFrontends, error) {
	frontend, err := make(ctx, c)
	if err != nil {
		return nil, err
	}
	d := &slackFrontends{make: make}
	d.change(frontend)
	return d, nil
}

// change has frontend, if not nil, take the place of the one there, which finishes what it has begun.
func (d *slackFrontends) change(frontend *slackFrontend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case frontend == nil:
	case d.start == nil:
		d.waiting = append(d.waiting, frontend)
	default:
		d.start(frontend)
	}
	before := d.now.Swap(frontend)
	switch {
	case before == nil:
	case frontend == nil:
		before.bot.Retire(nil)
	default:
		before.bot.Retire(frontend.bot)
	}
}

// run answers until ctx ends.
func (d *slackFrontends) run(ctx context.Context) error {
	if d == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	d.mu.Lock()
	d.start = func(frontend *slackFrontend) { group.Go(func() error { return frontend.run(ctx) }) }
	for _, frontend := range d.waiting {
		d.start(frontend)
	}
	d.waiting = nil
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	d.start = nil
	d.mu.Unlock()
	return group.Wait()
}

// handle puts the bot's requests over HTTP in front of the others.
func (d *slackFrontends) handle(others http.Handler) http.Handler {
	if d == nil {
		return others
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/slack/", func(w http.ResponseWriter, r *http.Request) {
		frontend := d.now.Load()
		if frontend == nil {
			others.ServeHTTP(w, r)
			return
		}
		frontend.bot.Handler().ServeHTTP(w, r)
	})
	mux.Handle("/", others)
	return mux
}

// close closes what never ran.
func (d *slackFrontends) close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, frontend := range d.waiting {
		err = errors.Join(err, frontend.close())
	}
	d.waiting = nil
	return err
}
