package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/store"
)

// NewModels makes the models of the configuration, the default one first. observe may be nil.
func NewModels(c *config.Config, logger *slog.Logger, observe func(llm.Completion)) (*llm.Chain, error) {
	chain, err := llm.New(llm.Options{Specs: c.LLM.Models, Proxy: c.ProxyURL(), Observe: observe, Logger: logger})
	if err == nil && c.LLM.Default != "" {
		if chain, err = chain.First(c.LLM.Default); err != nil {
			err = fmt.Errorf("llm.default: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return chain, nil
}

// Model is a provider of completions that knows the size of its context window in tokens.
type Model interface {
	llm.Provider
	Window() int
}

// NewEngine makes the engine that answers people with the tools of h. change may change its options before; it may be
// nil. The caller closes the engine.
func NewEngine(
	ctx context.Context, c *config.Config, m Model, h *host.Host, s *store.Store, logger *slog.Logger,
	change func(*chat.Options),
) (*chat.Engine, error) {
	options := &chat.Options{
		Provider: m, Store: s, System: c.Chat.System, Locale: c.Locale, Limits: c.Chat.Limits, Budgets: c.Chat.Budgets,
		Currency: c.LLM.Currency, Logger: logger,
	}
	options.Limits.Window = m.Window()
	if c.Chat.Zone != "" {
		var err error
		if options.Zone, err = time.LoadLocation(c.Chat.Zone); err != nil {
			return nil, fmt.Errorf("configuration: chat.zone: %w: give a name such as Asia/Tokyo", err)
		}
	}
	if c.Chat.Tools {
		options.Tools, options.Deferred, options.Call, options.MayAsk = h.Tools, h.Deferred, h.Call, h.MayAsk
	}
	if change != nil {
		change(options)
	}
	return chat.New(ctx, options)
}
