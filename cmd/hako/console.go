package main

import (
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

func (a *app) consoleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print a link that opens the console of hako serve",
		Long: `Print a link that logs you in to the console of hako serve. Open it in a browser on the machine of hako.
It works once, and for 10 minutes.

The command only needs write access to the store, so it works with any configuration of logins.
Standard error shows the address at which other people log in.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(c *config.Config, s *store.Store) error {
				if err := server.CheckConsole(c); err != nil {
					return err
				}
				if !server.ConsoleEnabled(c) {
					return errors.New("the console is off: set console.enabled (docs/console.md)")
				}
				secret, err := console.NewLink(cmd.Context(), s, audit.ProcessUser(), s.Time())
				if err != nil {
					return err
				}
				if c.Console.HasLogins() {
					printf(a.stderr, "Other people log in at %s%s\n", server.ConsoleURL(c), console.Path)
				}
				if address := server.ConsoleAddress(c); !listens(address) {
					printf(a.stderr, "Nothing listens at %s now: the link works once hako serve runs.\n", address)
				}
				return printf(a.stdout, "%s\n", server.LinkURL(c, secret))
			})
		},
	}
	cmd.Flags().String("http", "127.0.0.1:8420", "the address of hako serve, if it differs from the configuration")
	config.Flag(cmd.Flags(), "http", "http.address")
	return cmd
}

func listens(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	return err == nil && connection.Close() == nil
}
