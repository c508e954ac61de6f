package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/host/manifest"
)

// configure returns a plugin's configuration for callers of whom nothing else is set.
func (h *Host) configure(p *pluginFile) ([]byte, error) {
	name := p.manifest.Name
	config, err := p.manifest.Configure(h.options.Settings[name].Config)
	if err != nil {
		return nil, fmt.Errorf("plugin.%s.config in hako.yaml: %w", name, err)
	}
	return config, nil
}

// tenantConfigs are the keys that tenants set for a plugin, by tenant.
func (h *Host) tenantConfigs(plugin string) map[string]map[string]any {
	configs := map[string]map[string]any{}
	for tenant, settings := range h.options.Tenants {
		if config := settings.Config[plugin]; len(config) > 0 {
			configs[tenant] = config
		}
	}
	return configs
}

// configureTenants returns a plugin's configuration for the tenants that have their own, by tenant.
func (h *Host) configureTenants(p *pluginFile) (map[string][]byte, error) {
	name, configured := p.manifest.Name, map[string][]byte{}
	tenants := h.tenantConfigs(name)
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		err := checkTenantKeys(p, tenants[tenant])
		if err == nil {
			values := map[string]any{}
			maps.Copy(values, h.options.Settings[name].Config)
			maps.Copy(values, tenants[tenant])
			configured[tenant], err = p.manifest.Configure(values)
		}
		if err != nil {
			return nil, fmt.Errorf("tenants.%s.plugin.%s.config in hako.yaml: %w", tenant, name, err)
		}
	}
	return configured, nil
}

// checkTenantKeys refuses keys that cannot differ from tenant to tenant.
func checkTenantKeys(p *pluginFile, config map[string]any) error {
	if p.module.IsExtism() {
		return fmt.Errorf("a plugin of the Extism ABI has one configuration for all tenants: set it under plugin.%s.config", p.manifest.Name)
	}
	for _, permission := range p.manifest.Permissions.HTTP {
		if _, set := config[permission.ConfigKey]; set && permission.ConfigKey != "" {
			return &manifest.Error{Problems: []manifest.Problem{{Path: permission.ConfigKey, Message: fmt.Sprintf(
				"is the address that the HTTP permission %s is granted for, which is the same for all tenants: set it under plugin.%s.config",
				permission.Name, p.manifest.Name)}}}
		}
	}
	return nil
}
