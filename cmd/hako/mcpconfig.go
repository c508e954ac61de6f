package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/mcpconfig"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/terminal"
)

func (a *app) mcpConfigCommand() *cobra.Command {
	var f mcpConfigFlags
	names := slices.Sorted(maps.Keys(mcpconfig.Clients))
	cmd := &cobra.Command{
		Use:   "mcp-config " + strings.Join(names, "|"),
		Short: "Print what to paste into an MCP client's configuration",
		Long: `Print what to paste into an MCP client's configuration. The client starts hako itself and speaks to it over stdio; with --http
or --url it uses a server that is running. The file to paste into is named on standard error.

With --command a command of the client is printed instead that does the same, such as "claude mcp add"; with --link the address of a link
that installs hako. With --oauth the client logs its user in, and sends no token of the configuration.`,
		Args:      arguments(1, 1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, ok := mcpconfig.Clients[args[0]]
			if !ok {
				return usageError(cmd, errors.New(strictyaml.Unknown("client", args[0], names)))
			}
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if err := a.printMCPConfig(cmd, client, c, f); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "hako", "what the client calls the server")
	cmd.Flags().BoolVar(&f.http, "http", false, "use the HTTP server of this configuration")
	cmd.Flags().StringVar(&f.url, "url", "", "use the HTTP server at this URL")
	cmd.Flags().BoolVar(&f.oauth, "oauth", false, "let the client log its user in by OAuth, at the HTTP server")
	cmd.Flags().BoolVar(&f.command, "command", false, "print the client's own command that adds the server")
	cmd.Flags().BoolVar(&f.link, "link", false, "print a link that installs the server")
	cmd.MarkFlagsMutuallyExclusive("command", "link")
	return cmd
}

type mcpConfigFlags struct {
	name, url                  string
	http, oauth, command, link bool
}

func (a *app) printMCPConfig(cmd *cobra.Command, client mcpconfig.Client, c *config.Config, f mcpConfigFlags) error {
	s, err := mcpconfig.Stdio(c, a.path("."))
	if f.http || f.oauth || f.url != "" {
		s, err = client.HTTP(c, f.url, f.oauth)
	}
	if err != nil {
		return err
	}
	switch {
	case f.command && client.Command == nil:
		return errors.New("this client has no command that adds a server: leave out --command")
	case f.link && client.Link == nil:
		return errors.New("this client has no links that install a server: leave out --link")
	case f.command:
		printf(a.stderr, "Run this:\n")
		words := client.Command(f.name, s)
		for i, word := range words {
			words[i] = terminal.ShellWord(word)
		}
		printf(a.stdout, "%s\n", strings.Join(words, " "))
	case f.link:
		printf(a.stderr, "Open this on the machine of the client:\n")
		printf(a.stdout, "%s\n", client.Link(f.name, s))
	default:
		document, err := client.Document(f.name, s)
		if err != nil {
			return err
		}
		printf(a.stderr, "Paste this into %s:\n", client.File)
		if text, ok := document.(mcpconfig.Text); ok {
			err = printf(a.stdout, "%s", block(text))
		} else {
			err = a.printJSON(document)
		}
		if err != nil {
			return err
		}
	}
	if f.oauth {
		printf(a.stderr, "Then log in: "+client.Login+"\n", f.name)
	}
	return nil
}
