// Package chat lets people talk with a model that has the tools of the catalog.
//
// An Engine answers turns, one after the other in each conversation. The model's tool calls take the pipeline, as the calls of every
// door do; what tools return reaches the model as data, bounded and labelled. Of a conversation only what people and the model said
// in the end is kept, in the host's store: what tools did is in the audit log. A door shows a turn through its Surface.
package chat

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
)

// Options configures an Engine. Provider and Store must be set.
type Options struct {
	Provider llm.Provider
	// Store keeps conversations and what was used. The caller closes it after the Engine.
	Store *store.Store
	// Tools lists what the caller may use, by name. Nil means plain chat.
	Tools func(caller pipeline.Caller) []*catalog.Tool
	// Call makes a call: (*host.Host).Call. It must be set if Tools is.
	Call func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error)
	// MayAsk reports whether a call of the tool may wait for people: (*host.Host).MayAsk. Nil means that none does.
	MayAsk func(caller pipeline.Caller, tool *catalog.Tool) bool
	// System says who the model is and how it should behave, in place of the first sentence of what it is told.
	System string
	// Locale is for turns without one, a BCP 47 tag: "en" or "ja". Empty means "en".
	Locale string
	// Zone is where days begin, for the model and for budgets. Nil means time.Local.
	Zone    *time.Location
	Limits  Limits
	Budgets Budgets
	// Currency is that of the costs, for messages. Empty means "USD".
	Currency string
	// Tracer makes a span of every turn. Nil makes none.
	Tracer *trace.Tracer
	// Observe is told of every turn that has ended, from many goroutines at once. It may be nil.
	Observe func(Record)
	// Rated is told of feedback on answers that is new, from many goroutines at once. It may be nil.
	Rated func(Feedback)
	// Now is the clock. Nil means Store's.
	Now func() time.Time
	// Logger receives what goes wrong. It is never told what people and models say. Nil discards it.
	Logger *slog.Logger
}

// Limits bound a turn. Zero means the default.
type Limits struct {
	// Rounds is how often the model may ask for tools before it has to answer: 10.
	Rounds int
	// Calls is how many calls it may ask for in one round: 16. Parallel is how many of them run at once: 8.
	Calls, Parallel int
	// ToolTimeout bounds one call: 30 s. It stands still while a person is asked, for which there is AskTimeout: 5 min.
	ToolTimeout, AskTimeout time.Duration
	// Result is how much of a tool's result, or of a file, the model gets to read, in bytes: 32 KiB.
	Result int
	// Text is how much a person may say at once, in bytes: 64 KiB.
	Text int
	// Window is how many tokens the model reads: llm.DefaultContextWindow. Older messages are summarised before it is full.
	Window int
	// Waiting is how many turns of one conversation may wait for the one before: 10.
	Waiting int
}

func (l *Limits) fill() {
	for value, fallback := range map[*int]int{
		&l.Rounds: 10, &l.Calls: 16, &l.Parallel: 8, &l.Result: 32 << 10, &l.Text: 64 << 10, &l.Window: llm.DefaultContextWindow, &l.Waiting: 10,
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
	options Options
	book    *book
	lines   lines
	turns   sync.WaitGroup
}

// New returns an Engine, and puts an end to the turns that were under way when their process died: a note takes the place of the answer.
// The caller closes it. Errors are the store's.
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
	if e.book, err = openBook(ctx, o.Store, o.Logger); err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	if err := e.recover(ctx); err != nil {
		e.book.close()
		return nil, fmt.Errorf("conversations: %w", err)
	}
	return e, nil
}

// Close waits for the turns under way: cancel them first. No turn may begin after it.
func (e *Engine) Close() error {
	e.turns.Wait()
	e.book.close()
	return nil
}
