package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/internal/strictyaml"
)

// TenantNames returns the tenants that the configuration names, sorted.
func (c *Config) TenantNames() []string {
	names := slices.Collect(maps.Keys(c.Tenants))
	for _, token := range c.HTTP.Auth.Tokens {
		if token.Tenant != "" {
			names = append(names, token.Tenant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckTenant refuses a tenant that the configuration does not name. It is probably misspelt and would have none of the
// data of the one that is meant. If a claim of tokens names the tenants, every name is accepted.
func (c *Config) CheckTenant(tenant string) error {
	known := c.TenantNames()
	if tenant == "" || slices.Contains(known, tenant) || c.HTTP.OAuth.TenantClaim != "" {
		return nil
	}
	if near := strictyaml.Nearest(tenant, known); near != "" {
		return fmt.Errorf("unknown tenant %q: did you mean %q?", tenant, near)
	}
	return fmt.Errorf("unknown tenant %q: name it in %s, such as in tenants: {%s: {}}", tenant, FileName, tenant)
}

// Name returns the configuration file, or words for the built-in default.
func (c *Config) Name() string {
	if c.File == "" {
		return "the built-in default"
	}
	return c.File
}
