package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/devloop"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

func (a *app) devPluginCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "plugin [DIR]",
		Short: "Build a plugin after each save, and call its examples",
		Long: `Build the plugin in DIR (default: the current directory) after each save, as "hako plugin build" does,
bring it into service and call the examples in DIR/examples.yaml. A change of the configuration or of the consents
counts as a save, a file that the host or the plugin's tools write does not. What the plugin logs, its results and how
long each step took are shown. A version with an error changes nothing: the previous one stays.

A version that asks for no more than was approved is approved automatically; one that asks for more needs your approval.
The interpreter runs the plugin: it starts sooner after a change and computes slower than compiled code. Ctrl-C stops
it.`,
		Example: `  hako dev plugin greet
  hako dev plugin notes --mount notes=./data`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := a.pluginDir(args)
			if err != nil {
				return err
			}
			return a.devPlugin(cmd, dir, flags)
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

// pluginDir returns the absolute path of a plugin's folder: the first argument, or the current directory.
func (a *app) pluginDir(args []string) (string, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	return filepath.Abs(a.path(dir))
}

func (a *app) devPlugin(cmd *cobra.Command, dir string, flags approveFlags) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	settings, err := devloop.NewSettings(dir, a.source(cmd), c, shippedPlugins())
	if err != nil {
		return err
	}
	flags.trivial = true
	nobody := false // answers questions of the examples, which would take the answers to those of the loop
	a.person = &nobody
	a.stdin = terminal.Interruptible(cmd.Context(), a.stdin)
	return a.withShared(cmd.Context(), c, c.OpenStore, func(s *store.Store) error {
		return server.WithGovernance(cmd.Context(), c, devloop.NewLogger(a.stderr), func(g *server.Governance) error {
			h, err := a.hostFor(cmd.Context(), c, func(o *host.Options) {
				g.Apply(o)
				o.ConsentStore, o.Updates, o.Interpret = s, grant.SamePermissions, true
				o.Logger = devloop.NewLogger(a.stderr)
			})
			if err != nil {
				return err
			}
			loop := &devloop.Loop{
				Dir: dir, Host: h, Out: a.stdout, Settings: settings,
				Approve: func(ctx context.Context, p *host.Status) error {
					return a.approve(ctx, &view{settings.Config(), s, h, h.Plugins()}, p, flags)
				},
				Call: func(ctx context.Context, name, tool string, arguments []byte) (*pipeline.Result, error) {
					c := settings.Config()
					return a.send(ctx, h, c.Locale, "", abi.Request{Method: abi.CallTool,
						Name: c.Plugin[name].Prefix + tool, Arguments: arguments})
				},
			}
			return closing(h, loop.Run(cmd.Context()))
		})
	})
}
