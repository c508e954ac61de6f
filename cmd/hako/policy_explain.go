package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/govern/policy"
)

func (a *app) policyExplainCommand() *cobra.Command {
	var caller callerFlags
	var given string
	cmd := &cobra.Command{
		Use:   "explain TOOL",
		Short: "Show which rule decides a call, and why",
		Long: `Show the decision on a caller's call of TOOL, the rule of the policy that decides it, and why the rules
before it do not. Without --arguments it shows what depends on them.`,
		Example: `  hako policy explain file_write --as ken --group interns
  hako policy explain file_write --token ci --arguments '{"path":"a.txt","content":"x"}'
  hako policy explain file_write --token - <token.jwt`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			var input json.RawMessage
			err := inspect.CheckInput(caller.Token, given)
			if err == nil && given != "" {
				input, err = a.jsonArguments(given)
			}
			if err != nil {
				return usageError(cmd, err)
			}
			return a.withCaller(cmd, &caller, func(v *view, p *policy.Policy) error {
				tool, err := inspect.Tool(v.host, args[0])
				if err != nil {
					return err
				}
				call := caller.Call(tool.Name, tool.Source.Name, tool.Hints())
				call.Arguments = input
				e := policy.NewExplanation(p, call, v.config.Locale)
				if a.asJSON {
					return a.printJSON(e)
				}
				return printf(a.stdout, "%s\n", block(e.Text(v.config.Policy, v.config.Locale)))
			})
		},
	}
	caller.add(a, cmd)
	cmd.Flags().StringVar(&given, "arguments", "",
		"the arguments, a JSON object, or - to read them from standard input")
	return a.withJSON(cmd)
}
