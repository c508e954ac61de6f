package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/cmd/hako/internal/config"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/metrics"
)

const (
	// drainTime is how long calls in flight may still answer after a signal to stop.
	drainTime = 10 * time.Second
	// gcPercent trades memory for speed: most of what the server allocates are short-lived buffers of the MCP SDK. GOGC in the
	// environment overrides it.
	gcPercent = 400
)

// serveFlags are those of "hako serve" that are no settings.
type serveFlags struct {
	stdio, http, conformance bool
}

func (a *app) serveCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the tools to MCP clients",
		Long: `Offer the tools to MCP clients over HTTP, or with --stdio to the one client that started hako. Plugin folders are watched: what
is added, replaced or removed takes effect at once.

SIGINT or SIGTERM ends it: no more requests are taken, and those in flight have 10 seconds to answer. A second signal ends it at once.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			flags.http = !flags.stdio || cmd.Flags().Changed("http")
			return a.serve(cmd.Context(), c, flags)
		},
	}
	cmd.Flags().String("http", "127.0.0.1:8420", "serve MCP over HTTP on this address")
	config.Flag(cmd.Flags(), "http", "http.address")
	cmd.Flags().BoolVar(&flags.stdio, "stdio", false, "serve one client on standard input and output; HTTP then only with --http")
	cmd.Flags().BoolVar(&flags.conformance, "conformance", false, "add the fixtures of the MCP conformance suite")
	cmd.Flags().Lookup("conformance").Hidden = true
	return cmd
}

// service is a host and its doors. web is nil where there is no HTTP, slack where there is no bot.
type service struct {
	host   *host.Host
	door   *mcpserver.Server
	web    *web
	slack  *slackDoor
	logger *slog.Logger
}

// serve runs until ctx ends, or until the client on stdio leaves.
func (a *app) serve(ctx context.Context, c *config.Config, flags serveFlags) (err error) {
	auth, cert, err := checkHTTP(c)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	s := &service{logger: a.logger(c, level)}
	greeting := flags.http && c.LogFormat == "text"
	if level.Set(logLevels[c.LogLevel]); greeting {
		level.Set(silent) // the greeting says how the plugins stand
	}
	numbers := metrics.New(thisBuild().Version)
	credentials, err := newCredentials(c, s.logger, numbers.CredentialRenewed)
	if err != nil {
		return err
	}
	g, err := govern(ctx, c, s.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.started(); err != nil {
		return err
	}
	defer g.stopped()
	s.host, err = a.openHost(ctx, c, s.logger, func(o *host.Options) {
		o.Observer, o.Credentials, o.Changed = numbers, credentials, g.pluginChanged
		g.apply(o)
	})
	level.Set(logLevels[c.LogLevel])
	if err != nil {
		return err
	}
	defer func() { err = closing(s.host, err) }()
	numbers.Show(s.host)
	numbers.ShowCredentials(credentials)
	stopUpstreams, err := s.connectUpstreams(ctx, c, credentials, numbers)
	if err != nil {
		return err
	}
	defer stopUpstreams()
	numbers.ShowGovernance(g.policy, g.desk)
	defer g.desk.Watch(nil, g.waits)()
	warnUnknown(c, s.host.Plugins(), s.logger)
	if s.door, err = newDoor(c, s.host, auth, flags.conformance, s.logger); err != nil {
		return err
	}
	defer s.door.Close()
	defer g.policy.Watch(s.door.ToolsChanged)()
	if flags.http { // a process that a client has started is for that client
		if s.slack, err = newSlackDoor(ctx, c, s.host, g, numbers, s.logger); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.slack.close()) }()
		if s.web, err = listen(c, cert, s.slack.handle(s.door.Handler()), numbers.Handler(), g.state, s.logger); err != nil {
			return err
		}
	}
	if greeting {
		a.greet(c, s.web.url(), s.host.Plugins())
	} else if flags.http {
		s.logger.Info("serving", "url", s.web.url(), "version", thisBuild().Version)
	}
	return s.untilDone(ctx, flags.stdio, a.stdin, a.stdout)
}

// newDoor makes the MCP server. It is an error if the configuration holds what it does not take.
func newDoor(c *config.Config, h *host.Host, auth *mcpserver.Auth, conformance bool, logger *slog.Logger) (*mcpserver.Server, error) {
	door, err := mcpserver.New(h.Catalog(), h, &mcpserver.Options{
		Version: thisBuild().Version, Instructions: c.MCP.Instructions, Language: c.Locale,
		PageSize: c.MCP.PageSize, ListTTL: c.MCP.ListTTL, Limits: c.MCP.Limits,
		Origins: c.HTTP.Origins, Hosts: c.HTTP.Hosts, Auth: auth,
		Conformance: conformance, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return door, nil
}

// untilDone serves at all doors and watches the plugins until ctx ends or one of the doors does, and then drains.
func (s *service) untilDone(ctx context.Context, stdio bool, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.host.Watch(ctx) })
	s.web.serve(group)
	group.Go(func() error { return s.slack.run(ctx) })
	if stdio {
		group.Go(func() error {
			defer stop() // the client has gone
			return s.door.ServeStdio(ctx, in, out)
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		s.drain(context.WithoutCancel(ctx))
		return nil
	})
	return group.Wait()
}

// drain takes no more requests and gives those in flight time to answer.
func (s *service) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	s.web.drain()
	if err := errors.Join(s.door.Shutdown(ctx), s.web.shutdown(ctx)); err != nil {
		s.logger.Warn("stopped before all calls had answered", "err", err)
	}
}
