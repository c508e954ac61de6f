package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
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
			return printServers(a.stdout, servers, query)
		}),
	})
}

// printServers prints a table of upstream servers. If there is one, or one has the name that was searched for, it
// prints that one with the lines that configure it.
func printServers(w io.Writer, servers []index.Server, query string) error {
	for i := range servers {
		if len(servers) == 1 || servers[i].Name == query {
			return printServer(w, &servers[i])
		}
	}
	return printTable(w, "NAME\tVERSION\tAS\tDESCRIPTION", servers, func(s index.Server) []any {
		var kinds []string
		for _, setup := range s.Setups {
			if setup.Config != nil {
				kinds = append(kinds, setup.Kind)
			}
		}
		return []any{s.Name, s.Version, strings.Join(kinds, ","), s.Description}
	})
}

func printServer(w io.Writer, s *index.Server) error {
	printf(w, "%s\n", strings.TrimSpace(s.Name+" "+s.Version+"  "+s.Title))
	for _, line := range []string{s.Description, s.Homepage, s.Repository} {
		if line != "" {
			printf(w, "  %s\n", line)
		}
	}
	if s.Status == "deprecated" {
		fmt.Fprintln(w, "  It is deprecated.")
	}
	for _, setup := range s.Setups {
		if setup.Config == nil {
			printf(w, "\n%s: not for hako: %s\n", setup.Kind, setup.Reason)
			continue
		}
		printf(w, "\n%s:\n", setup.Kind)
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(setup.Config); err != nil {
			return err
		}
		for _, note := range setup.Notes {
			printf(w, "  %s\n", note)
		}
	}
	return nil
}
