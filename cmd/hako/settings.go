package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/processors"
)

//go:embed default.yaml
var defaultConfig []byte

// shippedFiles holds the shipped plugins, if "make plugins" has put them there.
//
//go:embed all:shipped
var shippedFiles embed.FS

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

// source is where the configuration for cmd comes from.
func (a *app) source(cmd *cobra.Command) config.Source {
	return config.Source{Dir: a.dir, File: a.file, Default: defaultConfig, Flags: cmd.Flags()}
}

// path is a path from the command line, as --directory has it.
func (a *app) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
	"error": slog.LevelError}

// logger writes to standard error, for standard output may belong to a protocol.
func (a *app) logger(c *config.Config, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(trace.Handler(slog.NewJSONHandler(a.stderr, options)))
	}
	return slog.New(trace.Handler(slog.NewTextHandler(a.stderr, options)))
}

// hostOptions are what c says of the host.
func hostOptions(c *config.Config) (*host.Options, error) {
	options := &host.Options{
		Folders:       c.Plugins,
		ShippedMounts: c.ShippedMounts,
		Roots:         grant.Roots{Dirs: c.AllowPaths, Hidden: c.OwnFiles()},
		Consents:      c.Consents,
		Updates:       grant.UpdateRule(c.Updates),
		CacheDir:      c.Cache,
		DataDir:       c.StateDir(),
		Settings:      c.Plugin,
		Tenants:       c.Tenants,
		Proxy:         c.ProxyURL(),
		Limits:        c.Limits,
		Ceilings:      c.Ceilings,
		MaxPluginSize: c.MaxPluginSize,
		MountQuota:    c.MountQuota,
		MemoryBudget:  c.MemoryBudget,
		Processors:    processors.Guests(),
		Mock:          c.Mock,
		Locale:        c.Locale,
		Environ:       os.Environ(),
	}
	if err := options.Roots.Check(); err != nil {
		return nil, fmt.Errorf("configuration: allowPaths: %w", err)
	}
	if !c.ShippedOn {
		return options, nil
	}
	var err error
	options.Shipped, err = shippedPlugins(c.ShippedDisabled)
	return options, err
}

// shippedPlugins returns the plugins in this program without those that are disabled. It fails for one that is not in
// it, unless it was built without any.
func shippedPlugins(disabled []string) ([]host.Shipped, error) {
	names, err := fs.Glob(shippedFiles, "shipped/*.wasm")
	if err != nil {
		return nil, err
	}
	var plugins []host.Shipped
	var known []string
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".wasm")
		known = append(known, name)
		if slices.Contains(disabled, name) {
			continue
		}
		read := func() ([]byte, error) { return shippedFiles.ReadFile(file) }
		plugins = append(plugins, host.Shipped{File: path.Base(file), Wasm: read})
	}
	for _, name := range disabled {
		if len(known) > 0 && !slices.Contains(known, name) {
			return nil, fmt.Errorf("configuration: shipped.disabled: hako ships no plugin %q: name some of %s", name,
				strings.Join(known, ", "))
		}
	}
	return plugins, nil
}

// silent is above every level.
const silent = slog.Level(math.MaxInt32)

// hostFor makes a host for one command and looks at its plugins; the caller closes it. What the host has to say about
// the plugins is not logged, for that is what the commands themselves report. Afterwards warnings are, those of guests
// too, or what the user asks for.
func (a *app) hostFor(ctx context.Context, c *config.Config, change func(*host.Options)) (*host.Host, error) {
	level := new(slog.LevelVar)
	level.Set(silent)
	h, err := a.openHost(ctx, c, a.logger(c, level), change)
	level.Set(slog.LevelWarn)
	if c.Origin("log.level") != config.OriginDefault {
		level.Set(logLevels[c.LogLevel])
	}
	return h, err
}

// openHost makes a host and looks at its plugins. The caller closes it.
func (a *app) openHost(ctx context.Context, c *config.Config, logger *slog.Logger,
	change func(*host.Options)) (*host.Host, error) {
	options, err := hostOptions(c)
	if err != nil {
		return nil, err
	}
	if c.ShippedOn && len(options.Shipped) == 0 && len(c.ShippedDisabled) == 0 {
		fmt.Fprintln(a.stderr, "hako: this program was built without the shipped plugins: build it with make build, or name a folder with --plugins")
	}
	options.Logger = logger
	if change != nil {
		change(options)
	}
	if options.Credentials == nil {
		if options.Credentials, err = newCredentials(c, logger, nil); err != nil {
			return nil, err
		}
	}
	h, err := host.New(options)
	if err != nil {
		return nil, err
	}
	if err := h.Load(ctx); err != nil {
		return nil, closing(h, err)
	}
	return h, nil
}
