// Package report prints the results of commands as text for people: one function for each kind of list or report.
// Commands print the same values as JSON themselves.
package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
)

// printTable prints rows under a heading, whose columns are separated by tabs.
func printTable[T any](out io.Writer, heading string, rows []T, columns func(T) []any) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if heading != "" {
		fmt.Fprintln(table, heading)
	}
	for _, row := range rows {
		values := columns(row)
		terminal.Printf(table, strings.TrimSuffix(strings.Repeat("%v\t", len(values)), "\t")+"\n", values...)
	}
	return table.Flush()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func dash(text string) string { return cmp.Or(text, "-") }

// Greeting prints where the server and its console are, what it offers and what to try next.
func Greeting(to io.Writer, version string, c *config.Config, url, console string, plugins []host.Status) {
	out := new(bytes.Buffer)
	terminal.Printf(out, "\nhako %s serves MCP at %s\n", version, url)
	if console != "" {
		terminal.Printf(out, "The console is at %s\n", console)
	}
	fmt.Fprintln(out)
	if len(plugins) == 0 {
		fmt.Fprintln(out, "  There are no plugins yet.")
	}
	_ = printTable(out, "", plugins, func(p host.Status) []any {
		what := strings.Join(p.Tools, ", ")
		if p.State != host.Active {
			what = p.Reason
		}
		return []any{"  " + p.Title(), p.State, what}
	})
	terminal.Printf(out, "\nNext:\n")
	for _, line := range inspect.NextCommands(c, url, plugins) {
		terminal.Printf(out, "  %s\n", line)
	}
	fmt.Fprintln(out)
	_, _ = out.WriteTo(to) // at once: no line of the log comes between
}

// Permissions prints what becomes of a caller's calls.
func Permissions(out io.Writer, list []policy.ToolPermission) error {
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

// AgentCalls prints the calls of managed agents.
func AgentCalls(out io.Writer, list []agent.Status) error {
	return printTable(out, "SESSION\tCALL\tTOOL\tSTATE\tTAKEN", list, func(c agent.Status) []any {
		state := string(c.State)
		if !c.Alive && c.State != agent.StateSent && c.State != agent.StateDropped {
			state += ", left"
		}
		return []any{c.Session, c.Call, c.Tool, state, moment(c.Taken)}
	})
}

// Credentials prints the state of credentials.
func Credentials(out io.Writer, list []credential.Status) error {
	const heading = "CREDENTIAL\tTENANT\tPROVIDER\tSTATE\tEXPIRES\tABOUT"
	return printTable(out, heading, list, func(s credential.Status) []any {
		return []any{s.Credential, dash(s.Tenant), dash(s.Provider), s.State, moment(s.Expires),
			dash(cmp.Or(s.Remedy, strings.Join(s.Facts(), ", ")))}
	})
}

// Access prints bearer tokens and logins of MCP clients.
func Access(out io.Writer, list *server.AccessList) error {
	const tokens = "TOKEN\tNAME\tUSER\tFOR\tSTATE\tEND\tLAST USED\tCREATED BY"
	err := printTable(out, tokens, list.Tokens, func(t console.TokenItem) []any {
		use := "MCP"
		if t.Role != "" {
			use = "console, " + string(t.Role)
		}
		return []any{cmp.Or(t.ID, t.Setting), t.Name, t.User, use, t.State, moment(t.Expires), moment(t.Used),
			dash(t.Creator)}
	})
	if err == nil && len(list.Logins) > 0 {
		fmt.Fprintln(out)
		const logins = "LOGIN\tUSER\tTENANT\tCLIENT\tSCOPES\tEND\tCREATED"
		err = printTable(out, logins, list.Logins, func(l *connection.Login) []any {
			return []any{l.ID, l.User, dash(l.Tenant), dash(l.Client), dash(strings.Join(l.Scopes, " ")),
				moment(l.Expires),
				moment(l.Created)}
		})
	}
	if err == nil && len(list.Blocks) > 0 {
		fmt.Fprintln(out)
		err = printTable(out, "BLOCKED\tISSUER\tSINCE\tBY", list.Blocks, func(b bearer.Block) []any {
			return []any{b.User, b.Issuer, moment(b.Blocked), b.By}
		})
	}
	return err
}

// Revoked prints what was revoked, and what remains.
func Revoked(out io.Writer, r *server.Revoked) error {
	for _, t := range r.Tokens {
		terminal.Printf(out, "Revoked %s (%s)\n", t.Name, t.ID)
	}
	for _, l := range r.Logins {
		terminal.Printf(out, "Ended the login of %s with %s (%s)\n", l.User,
			cmp.Or(l.Client, "an unnamed client"), l.ID)
	}
	if r.Sessions > 0 {
		terminal.Printf(out, "Ended sessions in the console: %d\n", r.Sessions)
	}
	for _, t := range r.Remaining {
		terminal.Printf(out, "Still valid: %s, because it is in the configuration: take it out of %s\n",
			t.Name, t.Setting)
	}
	return nil
}

// auditRow lines the columns of records up as far as they fit, without having seen them all.
const auditRow = "%-19s  %6s  %-24s  %-30s  %-12s  %9s  %s\n"

// AuditRows returns a function that prints entries one by one, under a heading.
func AuditRows(out io.Writer, zone *time.Location) func(*audit.Entry) error {
	headed := false
	return func(e *audit.Entry) error {
		at := e.Time.In(zone)
		if !headed {
			headed = true
			name, _ := at.Zone()
			terminal.Printf(out, auditRow, "TIME ("+name+")", "RECORD", "WHO", "WHAT", "OUTCOME", "TOOK", "MORE")
		}
		var row strings.Builder
		terminal.Printf(&row, auditRow, at.Format(time.DateTime), fmt.Sprint(e.Seq), e.Who(), e.What(),
			dash(e.Outcome), e.Took(), e.More())
		return terminal.Printf(out, "%s\n", strings.TrimRight(row.String(), " \n"))
	}
}
