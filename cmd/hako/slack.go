package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/cmd/hako/internal/config"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/metrics"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/slackbot"
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
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
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
		return "", fmt.Errorf("--url %s is not an https URL such as https://hako.example.com: Slack sends to no other", base)
	}
	return u.JoinPath("slack", workspace).String(), nil
}

// slackDoor is the bot with its engine. A nil slackDoor does nothing.
type slackDoor struct {
	bot    *slackbot.Bot
	engine *chat.Engine
}

// newSlackDoor makes the bot of the configured workspaces; nil if there are none. The caller closes it.
func newSlackDoor(ctx context.Context, c *config.Config, h *host.Host, g *government, numbers *metrics.Metrics, logger *slog.Logger) (*slackDoor, error) {
	if len(c.Slack) == 0 {
		return nil, nil
	}
	if len(c.LLM.Models) == 0 {
		return nil, errors.New("configuration: slack.workspaces needs a model to talk with: name one in llm.models")
	}
	models, err := newModels(c, logger, numbers.ModelAsked)
	if err != nil {
		return nil, err
	}
	engine, err := newEngine(ctx, c, models, h, g.store, numbers.TurnEnded, logger)
	if err != nil {
		return nil, err
	}
	bot, err := slackbot.New(ctx, &slackbot.Options{
		Workspaces: c.Slack, Engine: engine, Store: g.store, Desk: g.desk, Tools: toolsOf(h), Usage: slackUsage(c, engine), Locale: c.Locale,
		Proxy: c.ProxyURL(), Observer: numbers, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configuration: %w", err), engine.Close())
	}
	return &slackDoor{bot, engine}, nil
}

// slackUsage says what somebody has used today.
func slackUsage(c *config.Config, engine *chat.Engine) func(context.Context, pipeline.Caller) (string, error) {
	return func(ctx context.Context, caller pipeline.Caller) (string, error) {
		today, err := engine.Today(ctx, caller)
		format := "Used today: %d tokens, %.4f %s."
		if strings.HasPrefix(caller.Locale, "ja") {
			format = "本日の利用量: %d トークン、%.4f %s。"
		}
		return fmt.Sprintf(format, today.Tokens, today.Cost, c.LLM.Currency), err
	}
}

// run answers until ctx ends.
func (d *slackDoor) run(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.bot.Run(ctx)
}

// handle puts the bot's requests over HTTP in front of the others.
func (d *slackDoor) handle(others http.Handler) http.Handler {
	if d == nil {
		return others
	}
	mux := http.NewServeMux()
	mux.Handle("/slack/", d.bot.Handler())
	mux.Handle("/", others)
	return mux
}

func (d *slackDoor) close() error {
	if d == nil {
		return nil
	}
	return d.engine.Close()
}
