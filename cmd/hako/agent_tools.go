package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/agent"
)

func (a *app) agentToolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Print the definitions of the tools for an agent",
		Long: `Print the tools as custom tools in JSON, for the list "tools" of an agent: those that the policy lets
agents call, with the names and schemas that the API accepts. Tools that it would reject are omitted, and listed on
standard error. "hako agent apply" publishes them to agents.`,
		Example: `  hako agent tools > tools.json`,
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTools(cmd, func(v *view) error {
				list, err := a.definitions(v)
				if err != nil {
					return err
				}
				return a.printJSON(list)
			})
		},
	}
	cmd.Flags().String("locale", "en", "the language of descriptions: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	return cmd
}

// definitions are the tools in the form for agents. Tools that the API would reject are omitted with a message.
func (a *app) definitions(v *view) ([]agent.Definition, error) {
	tools, err := server.AgentTools(v.config, v.host)
	if err != nil {
		return nil, err
	}
	return agent.Definitions(tools, v.config.Locale, a.logger(v.config, server.LogLevels["warn"])), nil
}
