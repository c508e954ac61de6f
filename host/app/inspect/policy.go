package inspect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/strictyaml"
)

// PolicySite returns the names that a policy can use under a configuration, including tools of plugins that are not in
// service.
func PolicySite(c *config.Config, h *host.Host) *policy.Site {
	site := &policy.Site{Frontends: pipeline.Frontends, Tokens: tokenNames(c)}
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

// CheckInput returns an error if both flags are "-", which means standard input.
func CheckInput(token, arguments string) error {
	if token == "-" && arguments == "-" {
		return errors.New("standard input cannot be read for both --token - and --arguments -: give the value of " +
			"--token or of --arguments on the command line")
	}
	return nil
}

// ResolveCaller checks the names of a caller under a configuration, and adds what the configuration says of its token,
// or the token itself: verified is whom that speaks for, and nil if only its name is given.
func ResolveCaller(c *config.Config, caller *policy.Caller, verified *auth.Identity) error {
	if verified != nil && (caller.User != "" || caller.Tenant != "") {
		return errors.New("the token says who calls: leave out the user (--as) and the tenant")
	}
	if !slices.Contains(pipeline.Frontends, caller.Frontend) {
		return strictyaml.Unknown("frontend", caller.Frontend, pipeline.Frontends)
	}
	if caller.Email != "" && caller.Frontend != policy.FrontendSlack {
		return fmt.Errorf("callers at %s have no e-mail address besides their name: Slack alone tells it, so choose "+
			"the frontend slack, or give the address as the user", caller.Frontend)
	}
	if by := verified; by != nil {
		caller.User, caller.Tenant, caller.Token = by.User, by.Tenant, by.Token
		caller.Groups, caller.Scopes = slices.Concat(caller.Groups, by.Groups), slices.Concat(caller.Scopes, by.Scopes)
		return nil
	}
	if caller.Token != "" {
		i := slices.IndexFunc(c.HTTP.Auth.Tokens, func(t bearer.Token) bool { return t.Name == caller.Token })
		if i < 0 {
			return unknownToken(c, caller.Token)
		}
		token := c.HTTP.Auth.Tokens[i]
		caller.User, caller.Tenant = cmp.Or(caller.User, token.User, token.Name), cmp.Or(caller.Tenant, token.Tenant)
		caller.Scopes = append(slices.Clone(caller.Scopes), token.Scopes...)
	}
	return c.CheckTenant(caller.Tenant)
}

// unknownToken is the error for a token that is not in the configuration. It does not repeat what may be a secret.
func unknownToken(c *config.Config, name string) error {
	const remedy = "for other tokens, such as JWTs and those of 'hako token create', give it on standard input with " +
		"--token -, or give the user, tenant, groups and scopes"
	if bearer.IsToken(name) || strings.Count(name, ".") == 2 {
		return errors.New("a token is given by its name in http.auth.tokens, not by its text: " + remedy)
	}
	return fmt.Errorf("%s; %s", strictyaml.Unknown("token", name, tokenNames(c)), remedy)
}

// tokenNames returns the names of the tokens for MCP.
func tokenNames(c *config.Config) []string {
	names := []string{}
	for _, token := range c.HTTP.Auth.Tokens {
		names = append(names, token.Name)
	}
	return names
}

// Tool finds a tool on offer. Its error is a *pipeline.NotFoundError.
func Tool(h *host.Host, name string) (*catalog.Tool, error) {
	tools := h.Catalog().View()
	if tool, ok := tools.Tool(name); ok {
		return tool, nil
	}
	var known []string
	for _, tool := range tools.Tools {
		known = append(known, tool.Name)
	}
	missing := &pipeline.NotFoundError{Kind: "tool", Name: name, Near: strictyaml.Suggest(name, known)}
	if len(missing.Near) == 0 {
		missing.Hint = Hint(h, "tool", name)
	}
	return nil, missing
}

// Hints returns the annotations of the tools on offer.
func Hints(h *host.Host) func(tool string) (manifest.Annotations, bool) {
	tools := h.Catalog().View()
	return func(name string) (manifest.Annotations, bool) {
		tool, ok := tools.Tool(name)
		if !ok {
			return manifest.Annotations{}, false
		}
		return tool.Hints(), true
	}
}

// CaseCall returns the call of a case. A tool that is not on offer here has the plugin and the hints of the case.
func CaseCall(c *config.Config, h *host.Host, about *policytest.Call) (*policy.Call, error) {
	caller := about.As
	caller.Frontend = cmp.Or(caller.Frontend, pipeline.FrontendHTTP)
	if err := ResolveCaller(c, &caller, nil); err != nil {
		return nil, err
	}
	call := caller.Call(about.Tool, about.Plugin, about.Hints)
	if about.Plugin == "" {
		tool, err := Tool(h, about.Tool)
		if err != nil {
			return nil, fmt.Errorf("%w\nA case about a tool that this machine does not have says its plugin", err)
		}
		if about.Hints != (manifest.Annotations{}) {
			return nil, errors.New("hints are for tools that this machine does not have: name the plugin too")
		}
		call = caller.Call(tool.Name, tool.Source.Name, tool.Hints())
	}
	call.Arguments = about.Arguments
	if call.Arguments == nil {
		call.Arguments = json.RawMessage("{}")
	}
	return call, nil
}
