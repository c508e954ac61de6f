package main

import (
	"io"
	"os"
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
					err = show(a, result, func(out io.Writer, r *policytry.Result) error { return r.Print(out, path) })
					return failIf(!result.Safe(), err)
				})
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "24h", "calls from this time on: 2026-01-31, or how long ago, such as 24h")
	return a.withJSON(cmd)
}
