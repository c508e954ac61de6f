package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/pluginfile"
)

// addFlags are those of "hako plugin add".
type addFlags struct {
	digest  string
	replace bool
}

func (a *app) pluginAddCommand() *cobra.Command {
	var flags addFlags
	cmd := &cobra.Command{
		Use:   "add FILE|URL",
		Short: "Put a plugin from elsewhere into the plugin folder",
		Long: `Put a plugin, a file or what an https address answers, into the first plugin folder under the name that its manifest has. It is read and
checked before, and nothing of it runs: it is pending until you approve it.

With --digest nothing else than what its author published arrives. Your yes is bound to the digest in any case.`,
		Example: `  hako plugin add https://example.com/weather.wasm --digest sha256:463504be…`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if len(c.Plugins) == 0 {
				return fmt.Errorf("there is no plugin folder: name one with plugins in %s, or with --plugins",
					config.FileName)
			}
			return a.add(cmd.Context(), c, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.digest, "digest", "", "sha256:HEX, which the file must have")
	cmd.Flags().BoolVar(&flags.replace, "replace", false,
		"take the place of a file of that name; a version in service stays until you approve the new one")
	return cmd
}

func (a *app) add(ctx context.Context, c *config.Config, from string, flags addFlags) error {
	wasm, err := a.pluginFrom(ctx, c, from)
	if err != nil {
		return err
	}
	p, err := pluginfile.NewAddition(wasm, flags.digest, c.Plugins[0])
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if p.Exists() && !flags.replace {
		return fmt.Errorf("%s is there already: --replace puts this one in its place", p.Path)
	}
	m := p.Manifest
	operation := &audit.Operation{Action: "plugin.add", Target: audit.Target{Plugin: m.Name, Digest: p.Digest},
		Detail: map[string]string{"version": m.Version, "from": pluginfile.WithoutQuery(from)}}
	if err := a.audited(ctx, c, operation, p.Place); err != nil {
		return err
	}
	return printf(a.stdout, "%s %s is in %s\n%s\nNext: hako plugin approve %s%s\n", m.Name, m.Version, p.Path,
		p.Digest, m.Name, inspect.FolderFlags(c))
}

// pluginFrom reads a file, or downloads it if from is a URL.
func (a *app) pluginFrom(ctx context.Context, c *config.Config, from string) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil || u.Hostname() == "" {
		return manifest.ReadFile(a.path(from), c.MaxPluginSize)
	}
	return pluginfile.Fetch(ctx, u, c.ProxyURL(), c.MaxPluginSize)
}
