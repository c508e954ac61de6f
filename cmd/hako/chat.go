package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
)

// chatFlags are those of "hako chat".
type chatFlags struct {
	model, conversation, tenant string
	verbose                     bool
	// fleeting says that nothing is kept.
	fleeting bool
	// files go along with the first message.
	files []string
}

func (f *chatFlags) add(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.conversation, "conversation", "", "go on with this conversation (/history lists them)")
	cmd.Flags().StringArrayVar(&f.files, "file", nil,
		"send a file along with the first message; may be given several times")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "show the arguments of tool calls")
	cmd.Flags().String("locale", "en", "the language of messages, and of answers where yours is unclear: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	a.tenantFlag(cmd, &f.tenant)
}

func (a *app) chatCommand() *cobra.Command {
	var flags chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with a model that has the tools",
		Long: `Talk with a model of the configuration (llm.models in hako.yaml). It has the tools that you may call, under the same policy, limits
and records as at every other frontend; where the policy wants a yes, you are asked.

On a terminal, /help lists what else there is. Ctrl-C stops an answer, twice it ends. In a pipe the whole input is one message, and
only the answer is printed.

Exit codes: 0 answered, 1 there is no answer, 2 usage or configuration.`,
		Example: `  hako chat
  echo 東京の天気は？ | hako chat`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.chat(cmd.Context(), c, flags)
		},
	}
	cmd.Flags().StringVar(&flags.model, "model", "", "ask this model first (its name in llm.models)")
	flags.add(a, cmd)
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
		s := &chatSession{app: a, host: h, flags: flags, files: files, locale: c.Locale, currency: c.LLM.Currency,
			model: &choice{chain: models}}
		if s.engine, err = server.NewEngine(ctx, c, s.model, h, g.Store, logger, nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.engine.Close()) }()
		return s.run(ctx)
	})
}

// withGoverned makes what people talk to for one command, a host under policy, approvals and audit, with the upstream
// servers, and calls do.
func (a *app) withGoverned(ctx context.Context, c *config.Config, logger *slog.Logger,
	do func(*server.Governance, *host.Host) error) (err error) {
	g, err := server.OpenGovernance(ctx, c, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	h, err := a.hostFor(ctx, c, g.Apply)
	if err != nil {
		return err
	}
	defer func() { err = closing(h, err) }()
	return a.withUpstreams(ctx, c, h.Catalog(), everyUpstream, func([]mcpclient.Status) error { return do(g, h) })
}

// choice is the model that the person has chosen.
type choice struct {
	mu    sync.Mutex
	chain *llm.Chain
}

func (m *choice) now() *llm.Chain {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chain
}

func (m *choice) choose(name string) error {
	chosen, err := m.now().First(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chain = chosen
	return nil
}

func (m *choice) Name() string { return m.now().Name() }

func (m *choice) Window() int { return m.now().Window() }

func (m *choice) Complete(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	return m.now().Complete(ctx, r, stream)
}

// newConversation is the key of a new conversation, short enough to type.
func newConversation() string { return "t-" + strings.ToLower(rand.Text()[:8]) }

// maxMessage bounds the message in a pipe, in bytes.
const maxMessage = 64 << 10

// pipe answers one message, and prints the answer alone.
func (s *chatSession) pipe(ctx context.Context) error {
	text, err := io.ReadAll(io.LimitReader(s.app.stdin, maxMessage+1))
	if err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	answer, err := s.engine.Turn(ctx, &chat.Turn{
		Conversation: s.conversation, Caller: s.caller(), Text: strings.TrimSpace(string(text)), Files: s.takeFiles(),
		Locale: s.locale, Surface: pipeSurface{s},
	})
	if err != nil {
		return s.failure(err)
	}
	err = printf(s.app.stdout, "%s\n", block(answer.Text))
	return err
}

// failure gives err its text and its exit code.
func (s *chatSession) failure(err error) error {
	var told *chat.Error
	if !errors.As(err, &told) {
		return err
	}
	text := told.Text
	var model *llm.Error
	switch {
	case errors.As(err, &model): // whoever runs hako sits here
		text += "\n" + model.Error()
	case told.Reason == chat.ReasonHost:
		text += "\n" + told.Err.Error()
	}
	return &exitError{exitFailed, errors.New(text)}
}
