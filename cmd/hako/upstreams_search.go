package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/registry/index"
)

func (a *app) upstreamsSearchCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "search [WORDS]",
		Short: "Search a registry for MCP servers, and show the lines that configure them",
		Long: `Search the registry of MCP servers in the configuration (index.servers) for servers that have all of the
words. The name of a server shows it with the lines for the file of upstream servers. Nothing is added: hako does not
sandbox such a server, and anybody can publish one.`,
		Example: `  hako upstreams search weather
  hako upstreams search io.github.example/weather`,
		Args: arguments(0, 20),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			if c.Index.Servers == "" {
				return errors.New("there is no registry to search: set index.servers in " + config.FileName +
					", for example to https://registry.modelcontextprotocol.io")
			}
			query := strings.Join(args, " ")
			servers, more, err := index.Servers(cmd.Context(), c.Index.Servers, c.ProxyURL(), query, 50)
			switch {
			case err != nil:
				return err
			case a.asJSON:
				return a.printJSON(servers)
			case len(servers) == 0:
				return printf(a.stderr, "No server matches all of these words.\n")
			case more:
				printf(a.stderr, "There are more: add words to the search.\n")
			}
			return inspect.WriteServers(a.stdout, servers, query)
		}),
	})
}
