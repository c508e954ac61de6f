package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/config"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, check, explain and test the policy",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.PersistentFlags().String("policy", "hako.policy.yaml", "the file with the policy")
	config.Flag(cmd.PersistentFlags(), "policy", "policy")
	cmd.AddCommand(a.policyNewCommand(), a.policyCheckCommand(), a.policyExplainCommand(), a.policyTableCommand(),
		a.policyTestCommand(), a.policyTryCommand())
	return cmd
}

// withPolicy calls do with the policy in the configured file, or one without rules if there is none, and the plugins.
func (a *app) withPolicy(cmd *cobra.Command, do func(*view, *policy.Policy) error) error {
	return a.withTools(cmd, func(v *view) error {
		live, err := policy.OpenLive(v.config.Policy)
		if err != nil {
			return err
		}
		return do(v, live.Policy())
	})
}

// callerFlags describe a caller.
type callerFlags struct{ policy.Caller }

func (f *callerFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.User, "as", "", "the user who calls")
	flags.StringVar(&f.Email, "email", "",
		"the user's e-mail address in Slack, by which the policy may name the employee; needs --frontend slack")
	flags.StringVar(&f.Frontend, "frontend", pipeline.FrontendHTTP,
		"where the call comes in: mcp-http, mcp-stdio, terminal, slack, agent or console")
	flags.StringVar(&f.Token, "token", "",
		"the name of the token that the caller has; its user, tenant and scopes apply")
	flags.StringArrayVar(&f.Groups, "group", nil,
		"a group that the frontend knows the user to be in, besides those of the policy; may be given several times")
	flags.StringArrayVar(&f.Scopes, "scope", nil, "a scope of the caller's token; may be given several times")
	a.tenantFlag(cmd, &f.Tenant)
}
