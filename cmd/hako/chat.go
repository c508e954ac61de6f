package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// chatFlags are those of "hako chat".
type chatFlags struct {
	model, conversation, tenant string
	verbose, resume, temporary  bool
	// files go along with the first message.
	files []string
}

func (a *app) chatCommand() *cobra.Command {
	var flags chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Chat with a model that can call the tools",
		Long: `Chat with a model of the configuration (llm.models in hako.yaml). It can call the tools that you may
call, under the same policy, limits and records as at every other frontend. If the policy requires approval, you are
asked.

On a terminal, /help lists the commands. Ctrl-C stops an answer; pressed twice it ends the chat. In a pipe the whole
input is one message, and only the answer is printed.

Exit codes: 0 answered, 1 no answer, 2 usage or configuration.`,
		Example: `  hako chat
  echo 東京の天気は？ | hako chat`,
		Args: arguments(0, 0),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, _ []string) error {
			return a.chat(cmd.Context(), c, flags)
		}),
	}
	cmd.Flags().StringVar(&flags.model, "model", "", "try this model first (its name in llm.models)")
	cmd.Flags().StringVar(&flags.conversation, "conversation", "", "continue this conversation (/sessions lists them)")
	cmd.Flags().BoolVar(&flags.resume, "resume", false, "continue the conversation that you used last")
	cmd.Flags().BoolVar(&flags.temporary, "temporary", false, "delete the conversation at the end")
	cmd.MarkFlagsMutuallyExclusive("conversation", "resume", "temporary")
	cmd.Flags().StringArrayVar(&flags.files, "file", nil,
		"attach a file to the first message; may be given several times")
	cmd.Flags().BoolVar(&flags.verbose, "verbose", false, "show the arguments of tool calls")
	cmd.Flags().String("locale", "en", "the language of messages, and of answers if yours is unclear: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	a.tenantFlag(cmd, &flags.tenant)
	cmd.AddCommand(a.chatFeedbackCommand())
	return cmd
}

// chat opens all that a conversation needs, and talks until the input ends.
func (a *app) chat(ctx context.Context, c *config.Config, flags chatFlags) error {
	if err := c.CheckTenant(flags.tenant); err != nil {
		return err
	}
	files, err := a.chatFiles(flags.files)
	if err != nil {
		return err
	}
	if a.interactive() {
		ctx = context.WithoutCancel(ctx) // Ctrl-C is for the turn
	}
	logger := a.logger(c, chosenLevel(c, server.Silent))
	models, err := server.NewModels(c, logger, nil)
	if err != nil {
		return err
	}
	if flags.model != "" {
		if models, err = models.First(flags.model); err != nil {
			return fmt.Errorf("--model: %w", err)
		}
	}
	return a.withGoverned(ctx, c, logger, func(g *server.Governance, h *host.Host) (err error) {
		if !g.Store.Shared() { // there replicas see to it
			if err := chat.Forget(ctx, g.Store, c.Chat.Retain); err != nil {
				return err
			}
		}
		model := terminal.NewModel(models)
		engine, err := server.NewEngine(ctx, c, model, h, g.Store, logger, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		s := &terminal.Chat{
			IO: a.terminal(), Signals: a.signals, Engine: engine, Model: model, Tools: h.Tools,
			Caller: terminalCaller(c.Locale, flags.tenant),
			Locale: c.Locale, Currency: c.LLM.Currency, Conversation: flags.conversation, Files: files,
			Resume: flags.resume, Verbose: flags.verbose, Temporary: flags.temporary, State: c.StateDir(),
		}
		err = s.Run(ctx)
		if _, ok := errors.AsType[*terminal.NoAnswer](err); ok {
			return &exitError{exitFailed, err}
		}
		return err
	})
}

// withGoverned calls do with a host under policy, approvals and audit that also has the tools of the upstream servers.
func (a *app) withGoverned(ctx context.Context, c *config.Config, logger *slog.Logger,
	do func(*server.Governance, *host.Host) error) error {
	return server.WithGovernance(ctx, c, logger, func(g *server.Governance) error {
		h, err := a.hostFor(ctx, c, g.Apply)
		if err != nil {
			return err
		}
		return closing(h, a.withUpstreams(ctx, c, h.Catalog(),
			func([]mcpclient.Status) error { return do(g, h) }))
	})
}
