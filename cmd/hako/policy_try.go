package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytry"
)

func (a *app) policyTryCommand() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "try FILE",
		Short: "List the recorded calls that another policy would decide differently",
		Long: `Decide the calls of the audit log again with the policy in FILE, and list the calls whose decision would
change. No tool is called, and the policy in force stays.

A call cannot be decided again if the decision needs something that the log lacks, such as arguments. Such calls are
counted.

Exit codes: 0 no decision would change, 1 some would or cannot be decided again, 2 usage, or FILE is not valid.`,
		Example: `  hako policy try next.yaml --since 7d`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := audit.ParseTime(since, time.Now())
			if err != nil {
				return usageError(cmd, err)
			}
			path := a.path(args[0])
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return a.withPolicy(cmd, func(v *view, now *policy.Policy) error {
				next, err := policy.Parse(data)
				if err != nil {
					printProblems(a.stdout, path, "error", v.config.Locale, err)
					return &exitError{code: exitUsage}
				}
				return a.withAudit(cmd, "", func(log audit.Reader) error {
					result, err := policytry.Run(cmd.Context(), log, from, next, now, inspect.Hints(v.host))
					if err != nil {
						return err
					}
					err = show(a, result, func(out io.Writer, r *policytry.Result) error { return printTrial(out, r, path) })
					return failIf(!result.Safe(), err)
				})
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "24h", "calls from this time on: 2026-01-31, or how long ago, such as 24h")
	return a.withJSON(cmd)
}

// reasonTexts explains why calls cannot be decided again, in the order in which they are printed.
var reasonTexts = []struct{ reason, text string }{
	{policytry.Arguments, "a rule needs arguments, of which the log has a digest (audit.fields records some)"},
	{policytry.Employee, "a rule needs the employee, by an address that the log does not have"},
	{policytry.Tool, "a rule needs hints of a tool that is not in the catalog now"},
	{policytry.Older, "an earlier version wrote the record, without token, groups and scopes"},
}

// printTrial prints the result of a trial in English. file is the file with the policy that was tried.
func printTrial(w io.Writer, r *policytry.Result, file string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printf(out, "Of %d calls since %s, %d would be decided otherwise, %d the same", r.Calls,
		r.Since.Local().Format(time.DateTime), r.Changed, r.Same)
	if r.OtherRule > 0 {
		printf(out, " (%d by another rule)", r.OtherRule)
	}
	printf(out, ", and %d cannot be decided again.\n", r.Undecidable)
	if r.Cut {
		printf(out, "The log has more calls than one trial takes: those after %s were not looked at.\n",
			r.Until.Local().Format(time.DateTime))
	}
	for _, known := range reasonTexts {
		if n := r.Reasons[known.reason]; n > 0 {
			printf(out, "Not decided again: %d, because %s.\n", n, known.text)
		}
	}
	if len(r.Changes) > 0 {
		fmt.Fprint(out, "\nCALLS\tTOOL\tCALLER\tWAS\tWOULD BE\tLAST RECORD\n")
	}
	for _, c := range r.Changes {
		to := c.To.String()
		if c.To.Line > 0 {
			to += fmt.Sprintf(" (%s:%d)", filepath.Base(file), c.To.Line)
		}
		printf(out, "%d\t%s\t%s\t%s\t%s\t%d\n", c.Calls, c.Tool, c.Caller, c.From, to, c.Seq)
	}
	if r.Omitted > 0 {
		printf(out, "%d more calls would be decided otherwise\n", r.Omitted)
	}
	return out.Flush()
}
