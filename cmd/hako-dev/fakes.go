package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/internal/address"
)

func (a *app) fakesCommand() *cobra.Command {
	var listen, dir string
	cmd := &cobra.Command{
		Use:   "fakes",
		Short: "Serve fakes of the services that tools use",
		Long: `Serve fakes of freee, KING OF TIME, SmartHR, Google Sheets, Slack, GitHub, a search engine and the
Japan Meteorological Agency, filled with made-up data, and write a configuration with which hako uses them: nothing
leaves the machine, and no account is needed. Without --write-config it is in a directory that is removed at the end.
POST /_faults makes them fail. SIGINT or SIGTERM stops them.`,
		Example: `  hako-dev fakes --write-config fakes
  hako call send_slack_dm '{"user_id":"` + fakes.SlackUser + `","message":"hello"}' --config fakes/hako.yaml`,
		Args: arguments(0, false),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveFakes(cmd.Context(), listen, dir) },
	}
	cmd.Flags().StringVar(&listen, "address", "127.0.0.1:8431", "loopback address to listen on")
	cmd.Flags().StringVar(&dir, "write-config", "", "directory for hako.yaml and the secrets that it names")
	return cmd
}

// serveFakes serves the fakes; without a dir their configuration is in a temporary one.
func (a *app) serveFakes(ctx context.Context, listen, dir string) error {
	if !address.IsLoopbackHostport(listen) {
		return fmt.Errorf("--address %s can be reached from other machines, and the fakes have no authentication: "+
			"use a loopback address", listen)
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	return demo.ServeFakes(ctx, listen, dir, func(url, path, text string) error {
		a.report("\nThe fakes are at %[1]s/. In another terminal:\n\n  hako tools --config %[2]s\n"+
			"  hako serve --config %[2]s\n", url, path)
		_, err := io.WriteString(a.stdout, text)
		return err
	})
}
