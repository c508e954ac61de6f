package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/process"
	"github.com/hako-run/hako/internal/processors"
)

// extension is nil except in a build with the tag conformance, whose MCP server has the fixtures of the conformance
// suite.
var extension *mcpserver.Extension

func (a *app) serveCommand() *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the tools to MCP clients",
		Long: `Offer the tools to MCP clients over HTTP, or with --stdio to the one client that started hako. Plugin
folders are watched: added, replaced or removed plugins take effect at once.

The configuration is read again when its file changes, on SIGHUP and by the console. A file with an error changes
nothing. The log names the changes that need a restart.

SIGINT or SIGTERM starts a graceful shutdown: no more requests are accepted, and those in flight may finish within their
time limit (shutdown.grace). 10 seconds later remaining requests are abandoned. A second signal stops hako at once.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := a.loadServerOptions(cmd)
			if err != nil {
				return err
			}
			processors.Spare()
			options.Stdio, options.Extension = stdio, extension
			options.HTTP = !stdio || cmd.Flags().Changed("http")
			return a.serve(cmd.Context(), options)
		},
	}
	cmd.Flags().String("http", "127.0.0.1:8420", "serve MCP over HTTP on this address")
	config.Flag(cmd.Flags(), "http", "http.address")
	cmd.Flags().
		BoolVar(&stdio, "stdio", false, "serve one client on standard input and output; HTTP then only with --http")
	return cmd
}

// serve runs until ctx ends, or until the client on stdio disconnects.
func (a *app) serve(ctx context.Context, o server.Options) error {
	if o.Stdio {
		o.In, o.Out = a.stdin, a.pipe
		defer process.IgnoreBrokenPipes()()
	}
	// The greeting shows the state of the plugins.
	o.QuietStart = o.HTTP && o.Config.LogFormat == "text" && server.LogLevels[o.Config.LogLevel] <= slog.LevelInfo
	return a.runServer(ctx, server.New, o, func(s *server.Server) error {
		switch {
		case o.QuietStart:
			return a.greet(ctx, s)
		case o.HTTP:
			o.Logger.Info("serving", "url", s.URL(), "version", o.Build.Version)
		}
		return s.Run(ctx)
	})
}

// greet runs s after a greeting. A person at a terminal gets a link that logs in. A log gets none: others may read it
// later.
func (a *app) greet(ctx context.Context, s *server.Server) error {
	url, needsLink, err := s.ConsoleLink(ctx, terminal.IsTerminal(a.stderr))
	if err != nil {
		return err
	}
	if needsLink {
		url += " (hako console prints a link that logs you in)"
	}
	printGreeting(a.stderr, thisBuild().Version, s.Config, s.URL(), url, s.Plugins())
	return s.Run(ctx)
}

// loadServerOptions loads the configuration of a server.
func (a *app) loadServerOptions(cmd *cobra.Command) (server.Options, error) {
	source := a.source(cmd)
	digest := source.Digest() // before the configuration is read, so that a change in between is noticed
	c, err := a.config(cmd)
	if err != nil {
		return server.Options{}, err
	}
	return a.serverOptions(c, source, digest), nil
}

// runServer opens the server that newServer returns for o, calls run, and closes the server. It gives the failure of a
// listener its exit code.
func (a *app) runServer(ctx context.Context, newServer func(server.Options) (*server.Server, error), o server.Options,
	run func(*server.Server) error) (err error) {
	orders, stopOrders := a.orders()
	defer stopOrders()
	o.Reload = orders
	s, err := newServer(o)
	if err != nil {
		return err
	}
	defer a.exitIfStuck(ctx, s.Grace)()
	defer func() { err = errors.Join(err, s.Close()) }()
	a.warnUnshipped(o.Config)
	if err := s.Open(ctx); err != nil {
		return err
	}
	if err := run(s); !errors.Is(err, server.ErrServing) {
		return err
	}
	return &exitError{exitFailed, err}
}

// exitIfStuck ends the process if it has not ended by itself some time after ctx: what is stuck, such as a file system
// that does not answer, must not keep hako from stopping. cancel takes that back.
func (a *app) exitIfStuck(ctx context.Context, grace func() time.Duration) (cancel func()) {
	limit := func() time.Duration { return grace() + server.CloseTime }
	return process.OnStuck(ctx, limit, func(limit time.Duration) {
		printf(a.stderr, "hako: stopped without waiting any longer: shutdown did not finish within %v\n", limit)
		exit := a.exit
		if exit == nil {
			exit = os.Exit
		}
		exit(exitInterrupted)
	})
}

// orders are signals to read the configuration again, until stop is called.
func (a *app) orders() (orders <-chan os.Signal, stop func()) {
	if a.hangups != nil {
		return a.hangups, func() {}
	}
	return process.Hangups()
}

// printGreeting prints where the server and its console are, what it offers and what to try next.
func printGreeting(to io.Writer, version string, c *config.Config, url, console string, plugins []host.Status) {
	out := new(bytes.Buffer)
	printf(out, "\nhako %s serves MCP at %s\n", version, url)
	if console != "" {
		printf(out, "The console is at %s\n", console)
	}
	fmt.Fprintln(out)
	if len(plugins) == 0 {
		fmt.Fprintln(out, "  There are no plugins yet.")
	}
	_ = printTable(out, "", plugins, func(p host.Status) []any {
		what := strings.Join(p.Tools, ", ")
		if p.State != host.Active {
			what = p.Explain(c.Locale)
		}
		return []any{"  " + p.Title(), p.State, what}
	})
	printf(out, "\nNext:\n")
	for _, line := range inspect.NextCommands(c, url, plugins) {
		printf(out, "  %s\n", line)
	}
	fmt.Fprintln(out)
	_, _ = out.WriteTo(to) // at once: no line of the log comes between
}
