package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/credential"
)

func (a *app) secretsCommand() *cobra.Command {
	return groupCommand("secrets", "Look after the key that encrypts connections",
		a.secretsRotateCommand())
}

func (a *app) secretsRotateCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all connections with a new key",
		Long: `Encrypt all connections with a new key, at once. Where the key is in a file, hako makes the new one and
takes the old one out when all is done; a crash in between leaves both there, and the next run finishes. Where it comes
from the environment or a command, or replicas share the store, put the new key in front of the old one first, on a line
of its own, for all of them, and take the old one out afterwards.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changeCredentials(cmd, &audit.Operation{Action: "secrets.rotate"},
				func(b *credential.Broker) error {
					r, err := b.Rotate(cmd.Context())
					if err != nil {
						return err
					}
					if a.asJSON {
						return a.printJSON(r)
					}
					printf(a.stdout, "connections encrypted with the new key %s: %d\n", r.Key, r.Records)
					if r.Remedy != "" {
						printf(a.stderr, "now %s\n", r.Remedy)
					}
					return nil
				})
		},
	})
}
