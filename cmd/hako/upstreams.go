package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/doctor"
	"github.com/hako-run/hako/host/app/inspect"
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
		printMissingUpstreams(a.stderr, list)
		return do(list)
	})
}

// connectUpstreams is server.ConnectUpstreams for a command. It reports servers that are missing.
func (a *app) connectUpstreams(ctx context.Context, c *config.Config, to *catalog.Catalog,
	wanted func(*mcpclient.Spec) bool, do func([]mcpclient.Status) error) error {
	logger := a.logger(c, chosenLevel(c, server.Silent))
	return server.ConnectUpstreams(ctx, c, to, wanted, thisBuild().Version, logger,
		func(list []mcpclient.Status) error {
			printMissingUpstreams(a.stderr, list)
			return do(list)
		})
}

func (a *app) printUpstreams(list []mcpclient.Status, serving map[string]inspect.UpstreamState) error {
	shown, failed := inspect.Upstreams(list, serving)
	err := showList(a, shown,
		"no upstream servers are configured: name a file with upstreams in hako.yaml (docs/upstreams.md)",
		func(out io.Writer, list []inspect.Upstream) error { return printUpstreamTable(out, a.stderr, list) })
	return failIf(failed, err)
}

// printUpstreamTable prints a line for each upstream server, and to notes what is left out.
func printUpstreamTable(out, notes io.Writer, list []inspect.Upstream) error {
	heading := "NAME\tSTATE\tTRANSPORT\tPREFIX\tTOOLS\tPROMPTS\tRESOURCES\tPROTOCOL\tSERVER"
	serving := slices.ContainsFunc(list, func(s inspect.Upstream) bool { return s.Serving != nil })
	if serving {
		heading += "\tIN HAKO SERVE"
	}
	err := printTable(out, heading, list, func(s inspect.Upstream) []any {
		row := []any{s.Name, s.State, s.Transport, s.Prefix, s.Tools, s.Prompts, s.Resources, s.Protocol,
			dash(strings.TrimSpace(s.Server + " " + s.Version))}
		switch {
		case s.Serving != nil:
			return append(row, fmt.Sprintf("%s since %s", s.Serving.State, moment(s.Serving.Since)))
		case serving:
			return append(row, "-")
		}
		return row
	})
	for _, s := range list {
		for _, what := range s.Omitted {
			printf(notes, "%s: left out: %s\n", s.Name, what)
		}
	}
	return err
}

// printMissingUpstreams reports upstream servers that are down or slow.
func printMissingUpstreams(notes io.Writer, list []mcpclient.Status) {
	for _, s := range list {
		switch {
		case s.State == mcpclient.Down:
			printf(notes, "down: upstream server %s: %s\n", s.Name, s.Error)
		case s.State == mcpclient.Connecting && !s.Listed:
			printf(notes,
				"missing: upstream server %s: it is still being connected, and its tools are not known yet. "+
					"'hako upstreams' waits for it\n", s.Name)
		}
	}
}
