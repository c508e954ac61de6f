package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// configure returns a plugin's configuration under grants, for tenants without their own.
func (o *Options) configure(m *manifest.Manifest, grants grant.Grants) ([]byte, error) {
	config, err := m.Configure(grants.Config(m, o.Settings[m.Name].Config))
	if err != nil {
		return nil, fmt.Errorf("plugin.%s.config in hako.yaml: %w", m.Name, err)
	}
	return config, nil
}

// tenantConfigs returns the configuration keys that tenants set for a plugin, by tenant.
func (o *Options) tenantConfigs(plugin string) map[string]map[string]any {
	configs := map[string]map[string]any{}
	for tenant, settings := range o.Tenants {
		if config := settings.Config[plugin]; len(config) > 0 {
			configs[tenant] = config
		}
	}
	return configs
}

// configureTenants returns a plugin's configuration under grants, for tenants with their own, by tenant.
func (o *Options) configureTenants(m *manifest.Manifest, grants grant.Grants, fixed bool) (map[string][]byte, error) {
	name, configured := m.Name, map[string][]byte{}
	tenants := o.tenantConfigs(name)
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		err := checkTenantKeys(m, fixed, tenants[tenant])
		if err == nil {
			values := map[string]any{}
			maps.Copy(values, grants.Config(m, o.Settings[name].Config))
			maps.Copy(values, tenants[tenant])
			configured[tenant], err = m.Configure(values)
		}
		if err != nil {
			return nil, fmt.Errorf("tenants.%s.plugin.%s.config in hako.yaml: %w", tenant, name, err)
		}
	}
	return configured, nil
}

// checkTenantKeys rejects keys that cannot differ between tenants.
func checkTenantKeys(m *manifest.Manifest, fixed bool, config map[string]any) error {
	if fixed {
		return fmt.Errorf("a component, or a plugin of the Extism ABI, has one configuration for all tenants: set it under plugin.%s.config",
			m.Name)
	}
	for _, permission := range m.Permissions.HTTP {
		if _, set := config[permission.ConfigKey]; set && permission.ConfigKey != "" {
			return &manifest.Error{Problems: []manifest.Problem{{Path: permission.ConfigKey, Message: fmt.Sprintf(
				"is the address that the HTTP permission %s is granted for, which is the same for all tenants: set it under plugin.%s.config",
				permission.Name, m.Name)}}}
		}
	}
	return nil
}
