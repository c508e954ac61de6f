package main

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/credential"
)

func (a *app) connectStatusCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "status",
		Short: "Show the state of the credentials, without secrets",
		Long: `Show the state of the credentials: whether each is usable, since when and until when, and how to repair
the others. No secrets are shown, no tokens are fetched, and no commands of the configuration are run.

Exit codes: 0 all are usable, 1 one is not.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCredentials(cmd, func(b *credential.Broker) error {
				list, err := b.Status(cmd.Context())
				if err != nil {
					return err
				}
				err = showList(a, list, "no credentials are configured (docs/credentials.md)", printCredentials)
				unready := func(s credential.Status) bool { return s.State != credential.Ready }
				return failIf(slices.ContainsFunc(list, unready), err)
			})
		},
	})
}

// printCredentials prints the state of credentials.
func printCredentials(out io.Writer, list []credential.Status) error {
	const heading = "CREDENTIAL\tTENANT\tPROVIDER\tSTATE\tEXPIRES\tABOUT"
	return printTable(out, heading, list, func(s credential.Status) []any {
		return []any{s.Credential, dash(s.Tenant), dash(s.Provider), s.State, moment(s.Expires),
			dash(cmp.Or(s.Remedy, strings.Join(s.Facts(), ", ")))}
	})
}
