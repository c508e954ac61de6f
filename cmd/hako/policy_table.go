package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/govern/policy"
)

func (a *app) policyTableCommand() *cobra.Command {
	var caller callerFlags
	cmd := &cobra.Command{
		Use:   "table",
		Short: "List all tools with the decision on a caller's calls",
		Long: `List all tools in the catalog with the decision on a caller's calls: allow, deny, requires_confirmation,
or depends (on the arguments); and the rules that decide.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd, &caller, func(v *view, p *policy.Policy) error {
				table := []policy.ToolPermission{}
				for _, tool := range v.host.Catalog().View().Tools {
					call := caller.Call(tool.Name, tool.Source.Name, tool.Hints())
					table = append(table, p.PermissionOf(call, v.config.Locale))
				}
				return show(a, table, printPermissions)
			})
		},
	}
	caller.add(a, cmd)
	return a.withJSON(cmd)
}

// printPermissions prints what becomes of a caller's calls.
func printPermissions(out io.Writer, list []policy.ToolPermission) error {
	return printTable(out, "TOOL\tPLUGIN\tPERMISSION\tRULE", list, func(line policy.ToolPermission) []any {
		var rules []string
		for _, d := range line.Prospects {
			rule := d.Rule
			if len(line.Prospects) > 1 {
				rule = fmt.Sprintf("%s: %s", d.Action.Permission(), d.Rule)
			}
			rules = append(rules, rule)
		}
		return []any{line.Tool, line.Plugin, line.Permission, strings.Join(rules, "; ")}
	})
}
