package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// tenantFlag adds the flag for the tenant on whose behalf a command runs.
func (a *app) tenantFlag(cmd *cobra.Command, tenant *string) {
	cmd.Flags().StringVar(tenant, "tenant", "", "the tenant on whose behalf")
	complete := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := (&app{stderr: io.Discard, dir: a.dir, file: a.file}).config(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return tenants(c), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("tenant", complete); err != nil {
		panic(err) // there is no such flag
	}
}

// checkTenant refuses a tenant that the configuration does not know: it is probably misspelt, and would find nothing of
// what the one that was meant has stored. Where a claim of tokens names the tenants, all may be.
func checkTenant(c *config.Config, tenant string) error {
	known := tenants(c)
	if tenant == "" || slices.Contains(known, tenant) || c.HTTP.OAuth.TenantClaim != "" {
		return nil
	}
	if near := strictyaml.Nearest(tenant, known); near != "" {
		return fmt.Errorf("unknown tenant %q: did you mean %q?", tenant, near)
	}
	return fmt.Errorf("unknown tenant %q: name it in %s, such as in tenants: {%s: {}}", tenant, config.FileName, tenant)
}

// tenants are the names that the configuration knows.
func tenants(c *config.Config) []string {
	names := slices.Collect(maps.Keys(c.Tenants))
	for _, token := range c.HTTP.Auth.Tokens {
		if token.Tenant != "" {
			names = append(names, token.Tenant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
