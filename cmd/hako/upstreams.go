package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/doctor"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/report"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

func (a *app) upstreamsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upstreams",
		Short: "Connect the upstream MCP servers and show their state",
		Long: `Connect the MCP servers of the configuration (upstreams in hako.yaml), show the state and the tools of
each, and stop them again. If hako serve runs, this starts each program a second time. The column IN HAKO SERVE shows
the state of the server in that process: up, connecting, idle (connected for the next call) or down, and since when.

Exit codes: 0 all are up or disabled, 1 one is down or all of its tools are omitted, 2 the configuration is invalid.`,
		Args: arguments(0, 0),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, _ []string) error {
			h, err := a.hostFor(cmd.Context(), c, nil) // the servers may not offer what plugins offer
			if err != nil {
				return err
			}
			every := func(*mcpclient.Spec) bool { return true }
			return closing(h, a.connectUpstreams(cmd.Context(), c, h.Catalog(), every,
				func(list []mcpclient.Status) error {
					return a.printUpstreams(list, doctor.Upstreams(cmd.Context(), c))
				}))
		}),
	}
	cmd.AddCommand(a.upstreamsSearchCommand())
	return a.withJSON(cmd)
}

// upstreamFor selects the servers that can have a tool of that name.
func upstreamFor(tool string) func(*mcpclient.Spec) bool {
	return func(s *mcpclient.Spec) bool { return s.Owns(tool) }
}

// withUpstreams is server.WithUpstreams for a command. It reports servers that are missing.
func (a *app) withUpstreams(ctx context.Context, c *config.Config, to *catalog.Catalog,
	do func([]mcpclient.Status) error) error {
	logger := a.logger(c, chosenLevel(c, server.Silent))
	return server.WithUpstreams(ctx, c, to, thisBuild().Version, logger, func(list []mcpclient.Status) error {
		report.MissingUpstreams(a.stderr, list)
		return do(list)
	})
}

// connectUpstreams is server.ConnectUpstreams for a command. It reports servers that are missing.
func (a *app) connectUpstreams(ctx context.Context, c *config.Config, to *catalog.Catalog,
	wanted func(*mcpclient.Spec) bool, do func([]mcpclient.Status) error) error {
	logger := a.logger(c, chosenLevel(c, server.Silent))
	return server.ConnectUpstreams(ctx, c, to, wanted, thisBuild().Version, logger,
		func(list []mcpclient.Status) error {
			report.MissingUpstreams(a.stderr, list)
			return do(list)
		})
}

func (a *app) printUpstreams(list []mcpclient.Status, serving map[string]inspect.UpstreamState) error {
	shown, failed := inspect.Upstreams(list, serving)
	err := showList(a, shown,
		"no upstream servers are configured: name a file with upstreams in hako.yaml (docs/upstreams.md)",
		func(out io.Writer, list []inspect.Upstream) error { return report.Upstreams(out, a.stderr, list) })
	return failIf(failed, err)
}
