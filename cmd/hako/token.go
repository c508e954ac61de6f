package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/mcpserver/auth"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make bearer tokens for clients over HTTP, and for the console",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.tokenNewCommand())
	return cmd
}

func (a *app) tokenNewCommand() *cobra.Command {
	var user, expires, role string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a bearer token",
		Long: `Make a bearer token. It is printed once, on standard error; hako keeps only its hash. The entry for the configuration file
goes to standard output: for clients of MCP, or with --role for somebody who logs in to the console.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if expires != "" {
				if _, err := time.Parse(time.DateOnly, expires); err != nil {
					return usageError(cmd, fmt.Errorf("--expires %q is no date such as 2027-12-31", expires))
				}
			}
			use, key := "Clients send it in the header  Authorization: Bearer TOKEN", "http.auth.tokens"
			if role != "" {
				if !slices.Contains(console.Roles, console.Role(role)) {
					return usageError(cmd, fmt.Errorf("--role %q does not exist: there are viewer, approver and admin",
						role))
				}
				use, key = "It logs in to the console", "console.tokens"
			}
			token, hash := auth.NewToken()
			printf(a.stderr, "The token, which is shown only now:\n\n  %s\n\n%s\nPut this under %s in hako.yaml:\n\n",
				token, use, key)
			fmt.Fprintf(a.data(), "- name: %q\n  hash: %s\n", args[0], hash)
			for _, line := range []struct{ key, value string }{{"role", role}, {"user", user}, {"expires", expires}} {
				if line.value != "" {
					fmt.Fprintf(a.data(), "  %s: %q\n", line.key, line.value)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "the user that calls with it are made for (default NAME)")
	cmd.Flags().StringVar(&role, "role", "",
		"make a token for the console, with this role there: viewer, approver or admin")
	cmd.Flags().StringVar(&expires, "expires", "", "the last day on which it is valid (YYYY-MM-DD)")
	return cmd
}
