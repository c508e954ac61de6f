package inspect

import (
	"errors"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// PolicySite returns the names that a policy can use under a configuration, including tools of plugins that are not in
// service.
func PolicySite(c *config.Config, h *host.Host, frontends []string) *policy.Site {
	site := &policy.Site{Frontends: frontends, Tokens: TokenNames(c)}
	if c.HTTP.OAuth.TenantClaim == "" {
		site.Tenants = c.TenantNames()
	}
	for _, tool := range h.Catalog().View().Tools {
		site.Tools = append(site.Tools, policy.ToolName{Name: tool.Name, Plugin: tool.Source.Name})
	}
	for _, plugin := range h.Plugins() {
		if plugin.Serving != "" || plugin.Manifest == nil {
			continue
		}
		for _, tool := range plugin.Manifest.Tools {
			site.Tools = append(site.Tools, policy.ToolName{Name: c.Plugin[plugin.Name].Prefix + tool.Name,
				Plugin: plugin.Name})
		}
	}
	return site
}

// TokenNames returns the names of the tokens for MCP.
func TokenNames(c *config.Config) []string {
	names := []string{}
	for _, token := range c.HTTP.Auth.Tokens {
		names = append(names, token.Name)
	}
	return names
}

// Tool finds a tool on offer. The error names the one that was probably meant.
func Tool(h *host.Host, name string) (*catalog.Tool, error) {
	tools := h.Catalog().View()
	if tool, ok := tools.Tool(name); ok {
		return tool, nil
	}
	var known []string
	for _, tool := range tools.Tools {
		known = append(known, tool.Name)
	}
	return nil, errors.New(strictyaml.Unknown("tool", name, known))
}
