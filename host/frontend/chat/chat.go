// Package chat answers people with a model that uses the tools of the catalog.
//
// New returns an Engine; Engine.Turn answers one message. Turns of one conversation run one after the other. The
// model's tool calls pass through the pipeline, as the calls of every frontend do; their results reach the model
// bounded and labelled as data. The store keeps only the messages of people and the model's final answers; the audit
// log records what tools did. A frontend shows the progress of a turn through its Surface.
package chat

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
)

// Options configures an Engine. Provider and Store must be set.
type Options struct {
	Provider llm.Provider
	// Store keeps conversations and usage. The caller closes it after the Engine.
	Store *store.Store
	// Tools lists the tools that the caller may use, sorted by name. Nil means chat without tools.
	Tools func(caller pipeline.Caller) []*catalog.Tool
	// Deferred lists further tools that the caller may use: (*host.Host).Deferred. They are for models that load tools
	// when they need them; see llm.Tool. Nil means that there are none.
	Deferred func(caller pipeline.Caller) []*catalog.Tool
	// Call runs a tool: (*host.Host).Call. It must be set if Tools is.
	Call func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error)
	// MayAsk reports whether a call of the tool may wait for people: (*host.Host).MayAsk. Nil means never.
	MayAsk func(caller pipeline.Caller, tool *catalog.Tool) bool
	// System replaces the first sentence of the system prompt: who the model is and how it should behave.
	System string
	// Locale is the default language of turns, a BCP 47 tag: "en" or "ja". Empty means "en".
	Locale string
	// Zone is the time zone for the model and for daily budgets. Nil means time.Local.
	Zone    *time.Location
	Limits  Limits
	Budgets Budgets
	// Currency is the currency of costs, for messages. Empty means "USD".
	Currency string
	// Tracer records a span for every turn. Nil records none.
	Tracer *trace.Tracer
	// Observe, if set, is called at the end of every turn, concurrently.
	Observe func(Record)
	// Rated, if set, is called for new feedback on answers, concurrently.
	Rated func(Feedback)
	// Now is the clock. Nil means Store's.
	Now func() time.Time
	// Logger receives failures, but no messages of people or models. Nil discards them.
	Logger *slog.Logger
}

// Limits bound a turn. Zero means the default.
type Limits struct {
	// Rounds is the number of rounds of tool calls before the model must answer: 10.
	Rounds int
	// Calls limits the calls in one round: 16. Parallel limits those that run at once: 8.
	Calls, Parallel int
	// ToolTimeout bounds one call: 30 s. Its clock stops while a person is asked, which AskTimeout bounds: 5 min.
	ToolTimeout, AskTimeout time.Duration
	// Result bounds the text of a tool result or a file for the model, in bytes: 32 KiB.
	Result int
	// Text bounds a person's message, in bytes: 64 KiB.
	Text int
	// Window is the model's context window in tokens: llm.DefaultContextWindow. Older messages are summarised before it
	// is full.
	Window int
	// Waiting bounds the turns that wait in the queue of one conversation: 10.
	Waiting int
}

func (l *Limits) fill() {
	for value, fallback := range map[*int]int{
		&l.Rounds: 10, &l.Calls: 16, &l.Parallel: 8, &l.Result: 32 << 10, &l.Text: 64 << 10,
		&l.Window: llm.DefaultContextWindow, &l.Waiting: 10,
	} {
		if *value <= 0 {
			*value = fallback
		}
	}
	if l.ToolTimeout <= 0 {
		l.ToolTimeout = 30 * time.Second
	}
	if l.AskTimeout <= 0 {
		l.AskTimeout = 5 * time.Minute
	}
}

// Engine answers turns. It is safe for concurrent use.
type Engine struct {
	options       Options
	conversations *conversationStore
	queues        turnQueues
	turns         sync.WaitGroup
}

// New returns an Engine. Turns that were running when their process died end with a note in place of the answer. The
// caller closes the Engine. Errors come from the store.
func New(ctx context.Context, options *Options) (*Engine, error) {
	e := &Engine{options: *options}
	o := &e.options
	o.Limits.fill()
	if o.Locale == "" {
		o.Locale = "en"
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Currency == "" {
		o.Currency = "USD"
	}
	if o.Now == nil {
		o.Now = o.Store.Time
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if e.conversations, err = openConversations(ctx, o.Store, o.Logger); err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	if err := e.endInterrupted(ctx); err != nil {
		e.conversations.close()
		return nil, fmt.Errorf("conversations: %w", err)
	}
	return e, nil
}

// Close waits for running turns: cancel them first. No turn may begin afterwards.
func (e *Engine) Close() error {
	e.turns.Wait()
	e.conversations.close()
	return nil
}
