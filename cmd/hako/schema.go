package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/manifest"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of manifests, for editors",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.data(), manifest.JSONSchema())
			return err
		},
	}
}
