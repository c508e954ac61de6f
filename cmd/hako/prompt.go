package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

func (a *app) promptCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "prompt NAME [ARGUMENTS | NAME=VALUE ...]",
		Short: "Get a prompt",
		Long: `Get a prompt with its arguments filled in, the same way as an MCP client does. Arguments are texts, by name
as NAME=VALUE, or in a JSON object, or - to read that from standard input. Each message is printed after its role. The exit codes are those of "hako
call".`,
		Example: `  hako prompt plan_day date=2026-05-01`,
		Args:    arguments(1, maxWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := a.callArguments(args[1:])
			if err == nil && input == nil {
				input, err = terminal.Arguments([]byte(`{"additionalProperties":{"type":"string"}}`), args[1:])
			}
			if err == nil {
				err = json.Unmarshal(input, &map[string]string{})
			}
			if err != nil {
				return usageError(cmd, err)
			}
			request := abi.Request{Method: abi.GetPrompt, Name: args[0], Arguments: input}
			return a.request(cmd, tenant, args[0], upstreamFor(args[0]), fixed(request), nil, func(result *pipeline.Result) error {
				if a.asJSON {
					return a.printJSON(terminal.NewPromptResult(result.Response))
				}
				return terminal.WritePrompt(a.data(), result.Response.Messages)
			})
		},
	}
	a.requestFlags(cmd, &tenant)
	return cmd
}
