package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/strictyaml"
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
		a.policyTestCommand())
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

// frontends are where calls can come in.
var frontends = []string{pipeline.FrontendHTTP, pipeline.FrontendStdio, pipeline.FrontendTerminal, policy.FrontendSlack,
	pipeline.FrontendAgent, pipeline.FrontendConsole}

// callerFlags describe a caller.
type callerFlags struct {
	user, email, frontend, tenant, token string
	groups                               []string
}

func (f *callerFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.user, "as", "", "the user who calls")
	flags.StringVar(&f.email, "email", "",
		"the user's e-mail address in Slack, by which the policy may name the employee; needs --frontend slack")
	flags.StringVar(&f.frontend, "frontend", pipeline.FrontendHTTP,
		"where the call comes in: mcp-http, mcp-stdio, terminal, slack, agent or console")
	flags.StringVar(&f.token, "token", "", "the name of the token that the caller has; its user and tenant apply")
	flags.StringArrayVar(&f.groups, "group", nil,
		"a group that the frontend knows the user to be in, besides those of the policy; may be given several times")
	a.tenantFlag(cmd, &f.tenant)
}

// resolve checks the names and takes what the token says of its owner.
func (f *callerFlags) resolve(c *config.Config) error {
	if !slices.Contains(frontends, f.frontend) {
		return errors.New(strictyaml.Unknown("frontend", f.frontend, frontends))
	}
	if f.email != "" && f.frontend != policy.FrontendSlack {
		return fmt.Errorf("callers at %s have no e-mail address besides their name: Slack alone tells it, so add "+
			"--frontend slack, or give the address as the user", f.frontend)
	}
	if f.token != "" {
		i := slices.IndexFunc(c.HTTP.Auth.Tokens, func(t auth.Token) bool { return t.Name == f.token })
		if i < 0 {
			return errors.New(strictyaml.Unknown("token", f.token, inspect.TokenNames(c)))
		}
		token := c.HTTP.Auth.Tokens[i]
		f.user, f.tenant = cmp.Or(f.user, token.User, token.Name), cmp.Or(f.tenant, token.Tenant)
	}
	return c.CheckTenant(f.tenant)
}

// call is the caller's call of a tool, with arguments that are not known.
func (f *callerFlags) call(t *catalog.Tool) *policy.Call {
	return &policy.Call{
		Tool: t.Name, Plugin: t.Source.Name, Annotations: t.Hints(),
		Frontend: f.frontend, Tenant: f.tenant, User: f.user, Token: f.token, Groups: f.groups,
		Email: f.email,
	}
}
