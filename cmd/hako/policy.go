package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/locale"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := groupCommand("policy", "Write, check, explain and test the policy",
		a.policyNewCommand(), a.policyCheckCommand(), a.policyExplainCommand(), a.policyTableCommand(),
		a.policyTestCommand(), a.policyTryCommand())
	cmd.PersistentFlags().String("policy", "hako.policy.yaml", "the file with the policy")
	config.Flag(cmd.PersistentFlags(), "policy", "policy")
	return cmd
}

// withPolicy calls do with the policy in the configured file, or one without rules if there is none, and the plugins.
func (a *app) withPolicy(cmd *cobra.Command, do func(*view, *policy.Policy) error) error {
	return a.withTools(cmd, func(v *view) error {
		live, err := policy.OpenLive(v.config.Policy)
		if err != nil {
			return localized(err, v.config.Locale)
		}
		return do(v, live.Policy())
	})
}

// callerFlags describe a caller.
type callerFlags struct{ policy.Caller }

// withCaller is withPolicy for commands about a caller, whose description it completes.
func (a *app) withCaller(cmd *cobra.Command, f *callerFlags, do func(*view, *policy.Policy) error) error {
	var verified *auth.Identity
	if f.Token == "-" {
		if err := a.withStore(cmd, func(c *config.Config, s *store.Store) (err error) {
			verified, err = server.Identify(cmd.Context(), c, s, a.stdin)
			return err
		}); err != nil {
			return err
		}
	}
	return a.withPolicy(cmd, func(v *view, p *policy.Policy) error {
		if err := inspect.ResolveCaller(v.config, &f.Caller, verified); err != nil {
			return err
		}
		return do(v, p)
	})
}

func (f *callerFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.User, "as", "", "the user who calls")
	flags.StringVar(&f.Email, "email", "",
		"the user's e-mail address in Slack, by which the policy may name the employee; needs --frontend slack")
	flags.StringVar(&f.Frontend, "frontend", pipeline.FrontendHTTP,
		"the frontend of the call: mcp-http, mcp-stdio, terminal, slack, agent or console")
	flags.StringVar(&f.Token, "token", "",
		"the name of the token that the caller has, or - to read the token itself from standard input and verify it; "+
			"its user, tenant, groups and scopes apply")
	flags.StringArrayVar(&f.Groups, "group", nil,
		"a group of the user according to the frontend, besides those of the policy; may be given several times")
	flags.StringArrayVar(&f.Scopes, "scope", nil, "a scope of the caller's token; may be given several times")
	flags.StringVar(&f.Via, "via", "", "the plugin whose tool makes the call, if any")
	flags.StringVar(&f.Toolset, "toolset", "", "the caller's toolset, if any")
	a.tenantFlag(cmd, &f.Tenant)
}

// localized returns the text of err in a language, a BCP 47 tag, as an error.
func localized(err error, language string) error { return errors.New(locale.In(err, language)) }
