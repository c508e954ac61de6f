package main

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/mcpconfig"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) mcpConfigCommand() *cobra.Command {
	var o mcpconfig.Options
	names := slices.Sorted(maps.Keys(mcpconfig.Clients))
	cmd := &cobra.Command{
		Use:   "mcp-config [" + strings.Join(names, "|") + "]",
		Short: "Print what to paste into an MCP client's configuration",
		Long: `Print what to paste into an MCP client's configuration: that of the named client, or of the one that is
installed here, if there is only one. The client starts hako itself and speaks to it
over stdio; with --http or --url it uses a running server. Standard error names the file to paste into.

With --command the client's own command is printed instead, such as "claude mcp add"; with --link a link that installs
hako. With --oauth the client logs its user in, and sends no token of the
configuration.`,
		Args:      arguments(0, 1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := pickClient(args, names, exec.LookPath)
			if err != nil {
				return usageError(cmd, err)
			}
			client := mcpconfig.Clients[name]
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			instructions, err := client.Instructions(c, a.path("."), o)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if len(args) == 0 {
				printf(a.stderr, "For %s, which is installed here. Others: hako mcp-config %s\n", name, strings.Join(names, "|"))
			}
			return a.printMCPConfig(instructions)
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "hako", "the name of the server in the client")
	cmd.Flags().BoolVar(&o.HTTP, "http", false, "use the HTTP server of this configuration")
	cmd.Flags().StringVar(&o.URL, "url", "", "use the HTTP server at this URL")
	cmd.Flags().BoolVar(&o.OAuth, "oauth", false, "let the client log its user in by OAuth, at the HTTP server")
	cmd.Flags().BoolVar(&o.Command, "command", false, "print the client's own command that adds the server")
	cmd.Flags().BoolVar(&o.Link, "link", false, "print a link that installs the server")
	cmd.MarkFlagsMutuallyExclusive("command", "link")
	return cmd
}

// pickClient returns the named client, or the only one that find finds on this machine.
func pickClient(args, names []string, find func(string) (string, error)) (string, error) {
	if len(args) > 0 {
		if _, ok := mcpconfig.Clients[args[0]]; !ok {
			return "", strictyaml.Unknown("client", args[0], names)
		}
		return args[0], nil
	}
	switch found := mcpconfig.Installed(find); len(found) {
	case 0:
		return "", fmt.Errorf("none of the known clients is installed here: name one of %s", strings.Join(names, ", "))
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("several clients are installed here: name one of %s", strings.Join(found, ", "))
	}
}

// printMCPConfig prints what to paste on standard output, and what to do with it on standard error.
func (a *app) printMCPConfig(i *mcpconfig.Instructions) (err error) {
	printf(a.stderr, "%s:\n", i.Before)
	if text, ok := i.Document.(mcpconfig.Text); ok {
		err = printf(a.stdout, "%s", block(text))
	} else {
		err = a.printJSON(i.Document)
	}
	if err == nil && i.After != "" {
		printf(a.stderr, "%s\n", i.After)
	}
	return err
}
