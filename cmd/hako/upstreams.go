package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/server"
)

func (a *app) upstreamsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "upstreams",
		Short: "Connect the upstream MCP servers and say how they stand",
		Long: `Connect the MCP servers of the configuration (upstreams in hako.yaml), say for each how it stands and what it offers, and stop them
again. Each program is started a second time for this if hako serve runs; the metrics of that process say how its own stand.

Exit codes: 0 all are up or disabled, 1 one is down or all that it offers is left out, 2 the configuration is wrong.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			h, err := a.hostFor(cmd.Context(), c, func(*host.Options) {}) // what plugins offer is not the servers' to offer
			if err != nil {
				return err
			}
			return closing(h, a.withUpstreams(cmd.Context(), c, h.Catalog(), everyUpstream,
				func(list []mcpclient.Status) error {
					return a.printUpstreams(list, asJSON)
				}))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func everyUpstream(*mcpclient.Spec) bool { return true }

// upstreamFor selects the servers that can have a tool of that name.
func upstreamFor(tool string) func(*mcpclient.Spec) bool {
	return func(s *mcpclient.Spec) bool { return s.Owns(tool) }
}

// withUpstreams is server.WithUpstreams for a command. It reports servers that are down.
func (a *app) withUpstreams(ctx context.Context, c *config.Config, to *catalog.Catalog,
	wanted func(*mcpclient.Spec) bool, do func([]mcpclient.Status) error) error {
	logger := a.logger(c, chosenLevel(c, server.Silent))
	return server.WithUpstreams(ctx, c, to, wanted, thisBuild().Version, logger, func(list []mcpclient.Status) error {
		for _, s := range list {
			if s.State == mcpclient.Down {
				printf(a.stderr, "down: upstream server %s: %s\n", s.Name, s.Error)
			}
		}
		return do(list)
	})
}

func (a *app) printUpstreams(list []mcpclient.Status, asJSON bool) error {
	shown, failed := inspect.Upstreams(list)
	var err error
	if asJSON {
		err = a.printJSON(shown)
	} else {
		err = a.printUpstreamTable(shown)
	}
	if err == nil && failed {
		return &exitError{code: exitFailed}
	}
	return err
}

func (a *app) printUpstreamTable(list []inspect.Upstream) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.stderr,
			"no upstream servers are configured: name a file with upstreams in hako.yaml (docs/upstreams.md)")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tTRANSPORT\tPREFIX\tTOOLS\tPROMPTS\tRESOURCES\tPROTOCOL\tSERVER")
	for _, s := range list {
		printf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", s.Name, s.State, s.Transport, s.Prefix, s.Tools,
			s.Prompts, s.Resources,
			s.Protocol, strings.TrimSpace(s.Server+" "+s.Version))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		for _, what := range s.Omitted {
			printf(a.stderr, "%s: left out: %s\n", s.Name, what)
		}
	}
	return nil
}
