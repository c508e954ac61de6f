package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/hako-run/hako/host/pipeline"
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

// serve runs until ctx ends, or until the client on stdio leaves.
func (a *app) serve(ctx context.Context, c *config.Config, flags serveFlags) (err error) {
	auth, err := c.HTTP.Authenticator()
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	logger := a.logger(c, logLevels[c.LogLevel])
	numbers := metrics.New(thisBuild().Version)
	h, err := serveHost(ctx, c, logger, numbers)
	if err != nil {
		return err
	}
	defer func() { err = closing(h, err) }()
	numbers.Show(h)
	door, err := mcpserver.New(h.Catalog(), h, &mcpserver.Options{
		Version: thisBuild().Version, Instructions: c.MCP.Instructions, Language: c.Locale,
		PageSize: c.MCP.PageSize, ListTTL: c.MCP.ListTTL, Limits: c.MCP.Limits,
		Origins: c.HTTP.Origins, Hosts: c.HTTP.Hosts, Auth: auth,
		Conformance: flags.conformance, Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer door.Close()
	var w *web
	if flags.http {
		if w, err = listen(c, auth, door.Handler(), numbers.Handler(), logger); err != nil {
			return err
		}
		a.greet(c, w.url(), h.Plugins(), logger)
	}
	return a.untilDone(ctx, h, door, w, flags.stdio, logger)
}

// serveHost makes the host. Unlike openHost it logs all that happens.
func serveHost(ctx context.Context, c *config.Config, logger *slog.Logger, observer pipeline.Observer) (*host.Host, error) {
	options, err := hostOptions(c)
	if err != nil {
		return nil, err
	}
	options.Logger, options.Observer = logger, observer
	h, err := host.New(options)
	if err != nil {
		return nil, err
	}
	if err := h.Load(ctx); err != nil {
		return nil, closing(h, err)
	}
	return h, nil
}

// untilDone serves at all doors and watches the plugins until ctx ends or one of the doors does, and then drains. w is nil where
// there is no HTTP.
func (a *app) untilDone(ctx context.Context, h *host.Host, door *mcpserver.Server, w *web, stdio bool, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.Watch(ctx) })
	w.serve(group)
	if stdio {
		group.Go(func() error {
			defer stop() // the client has gone
			return door.ServeStdio(ctx, a.stdin, a.stdout)
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		w.drain()
		if err := errors.Join(door.Shutdown(drain), w.shutdown(drain)); err != nil {
			logger.Warn("stopped before all calls had answered", "err", err)
		}
		return nil
	})
	return group.Wait()
}
