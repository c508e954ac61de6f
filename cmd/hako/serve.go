package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/processors"
)

const (
	// leastGrace is the default of shutdown.grace where no plugin has a longer limit: upstream servers and models have
	// time too.
	leastGrace = 10 * time.Second
	// closeTime is how long the rest of a shutdown may take after the grace: then the process ends without it.
	closeTime = 10 * time.Second
)

// grace is how long calls in flight may still answer after a signal to stop.
func (s *service) grace() time.Duration {
	if s.config.ShutdownGrace > 0 {
		return s.config.ShutdownGrace
	}
	if h := s.serving.Load(); h != nil {
		return max(leastGrace, h.LongestCall())
	}
	return leastGrace
}

// endAtLast ends the process when it has not ended by itself some time after ctx did: something that is stuck, such as
// a file system that does not answer, keeps nobody from stopping hako. The function that it returns takes that back.
func (a *app) endAtLast(ctx context.Context, grace func() time.Duration) (undo func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		most := grace() + closeTime
		select {
		case <-time.After(most):
			printf(a.stderr, "hako: stopped without waiting any longer: something has not ended within %v\n", most)
			exit := a.exit
			if exit == nil {
				exit = os.Exit
			}
			exit(exitInterrupted)
		case <-ended:
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}

// serveFlags are those of "hako serve" that are no settings.
type serveFlags struct {
	stdio, http bool
	// source is where the configuration comes from, and read the digest of what was read of it.
	source config.Source
	read   string
}

func (a *app) serveCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the tools to MCP clients",
		Long: `Offer the tools to MCP clients over HTTP, or with --stdio to the one client that started hako. Plugin folders are watched: what
is added, replaced or removed takes effect at once.

The configuration is read again when its file changes, on SIGHUP and by the console. A file with an error changes nothing; what needs a
restart is named in the log.

SIGINT or SIGTERM ends it: no more requests are taken, and those in flight may answer until their limit on time ends
(shutdown.grace). What is left 10 seconds after that is given up; a second signal ends it at once.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags.source = a.source(cmd)
			flags.read = flags.source.Digest() // which is not newer than what is read next
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			go tendCollector(cmd.Context())
			processors.Spare()
			flags.http = !flags.stdio || cmd.Flags().Changed("http")
			return a.serve(cmd.Context(), c, flags)
		},
	}
	cmd.Flags().String("http", "127.0.0.1:8420", "serve MCP over HTTP on this address")
	config.Flag(cmd.Flags(), "http", "http.address")
	cmd.Flags().BoolVar(&flags.stdio, "stdio", false,
		"serve one client on standard input and output; HTTP then only with --http")
	return cmd
}

// serve runs until ctx ends, or until the client on stdio leaves.
func (a *app) serve(ctx context.Context, c *config.Config, flags serveFlags) (err error) {
	s := &service{config: c, flags: flags, level: new(slog.LevelVar)}
	defer a.endAtLast(ctx, s.grace)()
	if flags.stdio {
		defer outlivePipes()()
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.logger = a.logger(c, s.level)
	orders, deaf := a.orders()
	s.hangups = orders
	s.atEnd(deaf)
	if err := s.check(); err != nil {
		return err
	}
	s.level.Set(logLevels[c.LogLevel])
	if err := c.AwaitStore(ctx, s.logger); err != nil {
		return err
	}
	greeting := flags.http && c.LogFormat == "text"
	if greeting {
		s.level.Set(silent) // the greeting says how the plugins stand
	}
	err = s.openServer(ctx, a)
	if s.level.Set(logLevels[c.LogLevel]); err != nil {
		return err
	}
	if err := s.openFrontends(ctx); err != nil {
		return err
	}
	s.reloader.parts, s.reloader.others = s.parts(), agentKeys
	if greeting {
		place, err := s.console.place(ctx, c, s.government, s.web, isTerminal(a.stderr))
		if err != nil {
			return err
		}
		a.greet(c, s.web.url(), place, s.host.Plugins())
	} else if flags.http {
		s.logger.Info("serving", "url", s.web.url(), "version", thisBuild().Version)
	}
	return s.untilDone(ctx, a.stdin, a.pipe)
}

// openServer opens the host of a server, with all that its calls go through.
func (s *service) openServer(ctx context.Context, a *app) error {
	if err := s.openGovernment(ctx); err != nil {
		return err
	}
	s.traffic = newTraffic(s.config, s.flags)
	err := s.openHost(ctx, a, func(o *host.Options) {
		o.Credentials = renewedByJob{s.credentials}
		tellConsole(o, s.traffic)
	})
	if err != nil {
		return err
	}
	return s.openReplica(ctx) // its jobs end before the host closes the credentials that they renew
}

// outlivePipes makes the signal of a pipe that a client on stdio has closed an error of the write: it would end hako in
// the middle of its calls and records. The function it returns undoes that. (Ignored, it would be so for the commands
// of plugins too.)
func outlivePipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
