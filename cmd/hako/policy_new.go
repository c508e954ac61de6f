package main

import (
	_ "embed"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/internal/wholefile"
)

//go:embed starter.policy.yaml
var starterPolicy []byte

func (a *app) policyNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new [FILE]",
		Short: "Write an initial policy",
		Long: `Write an initial policy to the path in the configuration, or to FILE. It allows reading, and requires
approval of destructive tools and of writes to other systems; further rules are included as comments. An existing file
is not changed.`,
		Args: arguments(0, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			path := c.Policy
			if len(args) > 0 {
				path = a.path(args[0])
			}
			if err := wholefile.WriteNew(path, starterPolicy); err != nil {
				return err
			}
			printf(a.stdout, "wrote %s\n", path)
			printf(a.stderr, "\nNext:\n  hako policy table\n  hako policy check\n")
			return nil
		}),
	}
}
