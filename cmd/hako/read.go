package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

func (a *app) readCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource",
		Long: `Read a resource, the same way as an MCP client does. Texts are printed as they are, and so are other
bytes, but not on a terminal. The exit codes are those of "hako call".`,
		Example: `  hako read tasks://list`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := abi.Request{Method: abi.ReadResource, URI: args[0]}
			wanted := func(s *mcpclient.Spec) bool { return s.OwnsResource(args[0]) }
			return a.request(cmd, tenant, "", wanted, fixed(request), nil, func(result *pipeline.Result) error {
				if a.asJSON {
					return a.printJSON(terminal.NewResourceResult(result.Response))
				}
				return terminal.WriteResource(a.data(), result.Response.Contents, terminal.IsTerminal(a.stdout))
			})
		},
	}
	a.requestFlags(cmd, &tenant)
	return cmd
}
