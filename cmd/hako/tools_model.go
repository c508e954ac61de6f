package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// toolsFor lists the tools that callers of the tenant can use. Those of a plugin that asks for credentials are left out where the tenant
// has none of them and nobody shares one: any one makes a plugin useful, which may know several services.
func toolsFor(v *view, tenant string) []tool {
	return slices.DeleteFunc(toolList(v), func(t tool) bool {
		return !v.config.Mock && slices.ContainsFunc(v.plugins, func(p host.Status) bool {
			return p.Name == t.Plugin && p.Serving != "" && v.lacksCredentials(p.Grants, tenant)
		})
	})
}

func (v *view) lacksCredentials(grants grant.Grants, tenant string) bool {
	asks := false
	for _, rule := range grants.HTTP {
		_, shared := v.config.Credentials[rule.Credential]
		_, own := v.config.TenantCredentials[tenant][rule.Credential]
		if shared || own {
			return false
		}
		asks = asks || rule.Credential != ""
	}
	return asks
}

var toolsHeading = manifest.Text{"en": "Available tools:", "ja": "利用可能なツール:"}

// printToolText lists the tools for the prompt of a model, each on one line, whatever is in its description.
func (a *app) printToolText(v *view, list []tool) error {
	var text strings.Builder
	fmt.Fprintln(&text, toolsHeading.In(v.config.Locale))
	for _, t := range list {
		fmt.Fprintf(&text, "- %s: %s\n", t.Name, sentence(strings.Join(strings.Fields(printable(t.Description)), " ")))
	}
	_, err := fmt.Fprint(a.stdout, text.String())
	return err
}

// toolSchema is a tool as models that plan its calls get it.
type toolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// printToolSchemas lists the tools with the schemas of their parameters.
func (a *app) printToolSchemas(_ *view, list []tool) error {
	schemas := make([]toolSchema, 0, len(list))
	for _, t := range list {
		schemas = append(schemas, toolSchema{t.Name, strings.TrimSpace(t.Description), t.InputSchema})
	}
	return a.printJSON(schemas)
}
