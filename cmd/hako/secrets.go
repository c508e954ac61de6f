package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) secretsCommand() *cobra.Command {
	return groupCommand("secrets", "Manage the key that encrypts connections",
		a.secretsRotateCommand())
}

func (a *app) secretsRotateCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all connections with a new key",
		Long: `Encrypt all connections with a new key. If the key is in a file, hako creates the new key and removes the
old one at the end; after a crash in between the file has both, and the next run finishes the rotation. If the key comes
from the environment or a command, or if replicas share the store, first insert the new key before the old one, on a
separate line, for all replicas, and remove the old one afterwards.`,
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
