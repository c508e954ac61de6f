package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/policy"
)

// toolPermission is a line of the table of tools.
type toolPermission struct {
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	// Permission is allow, deny, requires_confirmation, or depends: on the arguments.
	Permission string     `json:"permission"`
	Prospects  []decision `json:"prospects"`
}

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
				if err := caller.resolve(v.config); err != nil {
					return err
				}
				table := permissionTable(v, p, &caller)
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

func permissionTable(v *view, p *policy.Policy, caller *callerFlags) []toolPermission {
	table := []toolPermission{}
	for _, tool := range v.host.Catalog().View().Tools {
		line := toolPermission{Tool: tool.Name, Plugin: tool.Source.Name}
		for _, prospect := range p.Prospects(caller.call(tool)) {
			line.Prospects = append(line.Prospects, decided(prospect.Decision, prospect.Line, prospect.When,
				v.config.Locale))
			if word := permissions[prospect.Action]; line.Permission == "" || line.Permission == word {
				line.Permission = word
			} else {
				line.Permission = "depends"
			}
		}
		table = append(table, line)
	}
	return table
}

func (a *app) printPermissions(table []toolPermission) error {
	out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "TOOL\tPLUGIN\tPERMISSION\tRULE")
	for _, line := range table {
		var rules []string
		for _, d := range line.Prospects {
			rule := d.Rule
			if len(line.Prospects) > 1 {
				rule = fmt.Sprintf("%s: %s", permissions[d.Action], d.Rule)
			}
			rules = append(rules, rule)
		}
		printf(out, "%s\t%s\t%s\t%s\n", line.Tool, line.Plugin, line.Permission, strings.Join(rules, "; "))
	}
	return out.Flush()
}
