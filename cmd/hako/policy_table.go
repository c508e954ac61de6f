package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/inspect"
)

func (a *app) policyTableCommand() *cobra.Command {
	var caller callerFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "table",
		Short: "List all tools with what becomes of a caller's calls",
		Long: `List all tools on offer with what becomes of a caller's calls: allow, deny, requires_confirmation, or depends where it is up to the
arguments; and the rules that decide.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPolicy(cmd, func(v *view, p *policy.Policy) error {
				if err := inspect.ResolveCaller(v.config, &caller.Caller); err != nil {
					return err
				}
				table := []policy.ToolPermission{}
				for _, tool := range v.host.Catalog().View().Tools {
					call := caller.Call(tool.Name, tool.Source.Name, tool.Hints())
					table = append(table, p.PermissionOf(call, v.config.Locale))
				}
				if asJSON {
					return a.printJSON(table)
				}
				return a.printPermissions(table)
			})
		},
	}
	caller.add(a, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printPermissions(table []policy.ToolPermission) error {
	out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "TOOL\tPLUGIN\tPERMISSION\tRULE")
	for _, line := range table {
		var rules []string
		for _, d := range line.Prospects {
			rule := d.Rule
			if len(line.Prospects) > 1 {
				rule = fmt.Sprintf("%s: %s", d.Action.Permission(), d.Rule)
			}
			rules = append(rules, rule)
		}
		printf(out, "%s\t%s\t%s\t%s\n", line.Tool, line.Plugin, line.Permission, strings.Join(rules, "; "))
	}
	return out.Flush()
}
