package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/agent"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
)

func (a *app) agentToolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Print the definitions of the tools for an agent",
		Long: `Print the tools as custom tools in JSON, for the list "tools" of an agent: those that the policy lets agents call, with the names and
schemas that the API accepts. Tools that it would refuse are left out, and named on standard error. "hako agent apply" gives them to agents.`,
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

// definitions are the tools as agents are given them. Those that the API would refuse are left out, which is said.
func (a *app) definitions(v *view) ([]agent.Definition, error) {
	if err := v.config.CheckTenant(v.config.Agent.Tenant); err != nil {
		return nil, err
	}
	live, err := policy.OpenLive(v.config.Policy)
	if err != nil {
		return nil, err
	}
	tools := agentTools(v, live.Policy())
	if n := len(tools); n > agent.MaxTools {
		return nil, fmt.Errorf(
			"the policy lets agents call %d tools, and an agent takes %d: let it deny some (frontends: [agent])",
			n,
			agent.MaxTools,
		)
	}
	return agent.Definitions(tools, v.config.Locale, a.logger(v.config, server.LogLevels["warn"])), nil
}

// agentTools are the tools that the configured caller may call, or ask to.
func agentTools(v *view, p *policy.Policy) (list []*catalog.Tool) {
	for _, tool := range v.host.Catalog().View().Tools {
		visible := p.Visible(&policy.Call{
			Tool: tool.Name, Plugin: tool.Source.Name, Annotations: tool.Hints(), Frontend: pipeline.FrontendAgent,
			Tenant: v.config.Agent.Tenant, User: v.config.Agent.User,
		})
		if visible && v.host.Offered(v.config.Agent.Tenant, tool) {
			list = append(list, tool)
		}
	}
	return list
}
