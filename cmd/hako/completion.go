package main

import (
	"io"
	"slices"
	"strings"

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

// completeCall proposes the tools that can be called, and after a tool the names and values of its arguments.
func (a *app) completeCall(cmd *cobra.Command, args []string, word string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeTools(cmd, args, word)
	}
	names, directive := a.complete(cmd, nil, func(v *view) (names []cobra.Completion) {
		tool, ok := v.host.Catalog().View().Tool(args[0])
		if !ok {
			return nil
		}
		return completePairs(terminal.Parameters(tool.Spec.InputSchema), args[1:], word)
	})
	return names, directive | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
}

// completePairs proposes NAME= for what is not given yet, and the values for a name that has few of them.
func completePairs(parameters []terminal.Parameter, given []string, word string) (pairs []cobra.Completion) {
	name, _, named := strings.Cut(word, "=")
	for _, p := range parameters {
		switch {
		case named && p.Name == name:
			for _, value := range p.Values {
				pairs = append(pairs, p.Name+"="+value)
			}
		case !named && !slices.ContainsFunc(given, func(pair string) bool { return strings.HasPrefix(pair, p.Name+"=") }):
			pairs = append(pairs, cobra.CompletionWithDesc(p.Name+"=", terminal.Summary(p.Description)))
		}
	}
	return pairs
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
