package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/terminal"
)

// completeTools proposes the tools that can be called.
func (a *app) completeTools(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	return a.complete(cmd, args, func(v *view) (names []cobra.Completion) {
		for _, t := range v.host.Catalog().View().Tools {
			names = append(
				names,
				cobra.CompletionWithDesc(t.Name, terminal.Summary(t.Spec.Description.In(v.config.Locale))),
			)
		}
		return names
	})
}

// completePlugins proposes plugins that are in one of the states, or all.
func (a *app) completePlugins(states ...host.State) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.complete(cmd, args, func(v *view) (names []cobra.Completion) {
			for _, p := range v.plugins {
				if p.Name != "" && (len(states) == 0 || slices.Contains(states, p.State)) {
					names = append(names, cobra.CompletionWithDesc(p.Name, string(p.State)))
				}
			}
			return names
		})
	}
}

// complete proposes names for the first argument.
func (a *app) complete(cmd *cobra.Command, args []string,
	propose func(*view) []cobra.Completion) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	quiet := &app{stderr: io.Discard, dir: a.dir, file: a.file}
	err := quiet.withPlugins(cmd, func(v *view) error {
		names = propose(v)
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
