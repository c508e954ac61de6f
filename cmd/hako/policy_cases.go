package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytest"
)

func (a *app) policyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE",
		Short: "Run test cases against the policy",
		Long: `Run test cases against the policy: calls or command lines, each with the expected decision.
docs/policy.md has an example.

Exit codes: 0 all passed, 1 some failed, 2 usage, or the policy or the cases are not valid.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPolicy(cmd, func(v *view, p *policy.Policy) error {
				cases, err := policytest.Read(a.path(args[0]))
				if err != nil {
					return localized(err, v.config.Locale)
				}
				return a.runCases(v, p, cases)
			})
		},
	}
}

// runCases prints the cases that fail, and how many there are.
func (a *app) runCases(v *view, p *policy.Policy, cases *policytest.Cases) error {
	failures, err := cases.Run(p, func(c *policytest.Call) (*policy.Call, error) {
		return inspect.CaseCall(v.config, v.host, c)
	})
	if err != nil {
		return err
	}
	return failIf(len(failures) > 0, printCases(a.stdout, cases, failures))
}

// printCases prints the cases of a policy that failed, and the number of all.
func printCases(out io.Writer, cases *policytest.Cases, failures []policytest.Failure) error {
	for _, f := range failures {
		_ = printf(out, "--- %s (%s:%d)\n-%s\n+%s\n", f.Name, cases.Path, f.Line, f.Want, f.Got)
		if f.Why != "" {
			_ = printf(out, " %s\n", f.Why)
		}
	}
	if len(failures) > 0 {
		return printf(out, "%d of %s failed\n", len(failures), terminal.Count(cases.Len(), "case"))
	}
	return printf(out, "%s passed\n", terminal.Count(cases.Len(), "case"))
}
