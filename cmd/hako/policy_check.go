package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) policyCheckCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report errors and probable mistakes in a policy",
		Long: `Report all errors in a policy, with line and column. Warnings are about probable mistakes in a valid
policy: rules that can never decide, because an earlier one decides all of their calls, and tools, plugins, frontends,
tenants, tokens and groups that do not exist here.

Exit codes: 0 the policy is valid (there may be warnings), 1 it is not, or with --strict there are warnings, 2 usage or
configuration.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTools(cmd, func(v *view) error {
				path := v.config.Policy
				if len(args) > 0 {
					path = a.path(args[0])
				}
				return a.checkPolicy(v, path, strict)
			})
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

func (a *app) checkPolicy(v *view, path string, strict bool) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no policy %s: hako policy new writes one", path)
	}
	if err != nil {
		return err
	}
	p, err := policy.Parse(data)
	if err != nil {
		printProblems(a.stdout, path, "error", v.config.Locale, err)
		return &exitError{code: exitFailed}
	}
	warnings := policy.Lint(data, inspect.PolicySite(v.config, v.host))
	printProblems(a.stdout, path, "warning", v.config.Locale, warnings)
	if warnings != nil && strict {
		return &exitError{code: exitFailed}
	}
	return printf(a.stdout, "%s is valid (rules: %d, groups: %d, rules for commands: %d, quotas: %d)\n",
		path, len(p.Rules()), len(p.Groups()), len(p.Commands), len(p.Quotas))
}

// printProblems prints each problem of a file on a line with its place, as editors understand it. kind is error or
// warning, language a BCP 47 tag.
func printProblems(out io.Writer, path, kind, language string, err error) {
	var list *strictyaml.Error
	if !errors.As(err, &list) {
		if err != nil {
			printf(out, "%s: %s: %v\n", path, kind, err)
		}
		return
	}
	for _, problem := range list.Lines(path, kind, language) {
		printf(out, "%s\n", problem)
	}
}
