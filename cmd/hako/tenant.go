package main

import (
	"io"

	"github.com/spf13/cobra"
)

// tenantFlag adds the flag for the tenant on whose behalf a command runs.
func (a *app) tenantFlag(cmd *cobra.Command, tenant *string) {
	cmd.Flags().StringVar(tenant, "tenant", "", "the tenant on whose behalf")
	complete := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := (&app{stderr: io.Discard, dir: a.dir, file: a.file}).config(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return c.TenantNames(), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("tenant", complete); err != nil {
		panic(err) // there is no such flag
	}
}
