package main

import (
	"context"
	"embed"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/trace"
)

//go:embed default.yaml
var defaultConfig []byte

//go:embed all:shipped
var shippedFiles embed.FS

// shippedPlugins returns the shipped plugins, which are there if "make plugins" has put them into the folder.
var shippedPlugins = sync.OnceValue(func() []shipped.Plugin { return shipped.MustRead(shippedFiles, "shipped") })

// config reads the configuration for cmd, and reports what in it has no effect.
func (a *app) config(cmd *cobra.Command) (*config.Config, error) {
	c, err := config.Load(a.source(cmd))
	if err != nil {
		return nil, err
	}
	for _, warning := range c.Warnings {
		printf(a.stderr, "hako: %s\n", warning)
	}
	return c, nil
}

// withConfig is the run function of a command that reads the configuration first.
func (a *app) withConfig(do func(*cobra.Command, *config.Config, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.config(cmd)
		if err != nil {
			return err
		}
		return do(cmd, c, args)
	}
}

// source returns the configuration's source for cmd: its file, folder and flags.
func (a *app) source(cmd *cobra.Command) config.Source {
	return config.Source{Dir: a.dir, File: a.file, Default: defaultConfig, Flags: cmd.Flags()}
}

// path is a path from the command line, relative to --directory.
func (a *app) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

// logger writes to standard error, because standard output may belong to a protocol.
func (a *app) logger(c *config.Config, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(trace.Handler(slog.NewJSONHandler(a.stderr, options)))
	}
	return slog.New(trace.Handler(slog.NewTextHandler(a.stderr, options)))
}

// chosenLevel is the log level if the user has set one, otherwise the given level.
func chosenLevel(c *config.Config, otherwise slog.Level) slog.Level {
	if c.Origin("log.level") != config.OriginDefault {
		return server.LogLevels[c.LogLevel]
	}
	return otherwise
}

// serverOptions are the options of a server with the configuration c, which was read after a source had this digest.
func (a *app) serverOptions(c *config.Config, source config.Source, digest string) server.Options {
	b, level := thisBuild(), new(slog.LevelVar)
	return server.Options{
		Config: c, Source: source, Digest: digest, Shipped: shippedPlugins(),
		Build: console.Build{Version: b.Version, Go: b.Go, Commit: b.Commit},
		Level: level, Logger: a.logger(c, level),
	}
}

// hostFor makes a host for one command and loads its plugins; the caller closes it. Nothing is logged about loading,
// because the commands themselves report the state of plugins. Afterwards the host logs warnings, plugins what they
// log from info on, or both the level that the user has set.
func (a *app) hostFor(ctx context.Context, c *config.Config, change func(*host.Options)) (*host.Host, error) {
	ofHost, ofGuests := new(slog.LevelVar), new(slog.LevelVar)
	ofHost.Set(server.Silent)
	ofGuests.Set(server.Silent)
	a.warnUnshipped(c)
	logger := slog.New(&guestLevels{a.logger(c, slog.LevelDebug).Handler(), ofHost, ofGuests})
	h, err := server.NewHost(ctx, c, shippedPlugins(), logger, change)
	ofHost.Set(chosenLevel(c, slog.LevelWarn))
	ofGuests.Set(chosenLevel(c, slog.LevelInfo))
	return h, err
}

// guestLevels is a handler with one level for what guests log and one for the rest.
type guestLevels struct {
	slog.Handler
	ofHost, ofGuests slog.Leveler
}

func (g *guestLevels) Enabled(ctx context.Context, level slog.Level) bool {
	if sandbox.IsGuestRecord(ctx) {
		return level >= g.ofGuests.Level()
	}
	return level >= g.ofHost.Level()
}

func (g *guestLevels) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &guestLevels{g.Handler.WithAttrs(attrs), g.ofHost, g.ofGuests}
}

func (g *guestLevels) WithGroup(name string) slog.Handler {
	return &guestLevels{g.Handler.WithGroup(name), g.ofHost, g.ofGuests}
}

// warnUnshipped logs that the program has no shipped plugins although the configuration wants them.
func (a *app) warnUnshipped(c *config.Config) {
	if c.ShippedOn && len(shippedPlugins()) == 0 && len(c.ShippedDisabled) == 0 {
		printf(a.stderr, "hako: this binary was built without the shipped plugins: build it with make build, "+
			"or name a folder with --plugins\n")
	}
}
