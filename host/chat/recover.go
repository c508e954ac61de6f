package chat

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/store"
)

// Interruption is a turn that had no answer when its process died.
type Interruption struct {
	// Conversation is Turn.Conversation, Tenant the caller's. Owner is who began the conversation.
	Tenant, Conversation, Owner string
	// Locale is that of the turn, Text what now stands in the place of the answer, in that language.
	Locale, Text string
}

// recover ends what dead processes left running.
func (e *Engine) recover(ctx context.Context) error {
	names, err := e.book.processes(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := e.bury(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// bury ends what the process of that name left running, if it is dead. One that had this process's name is.
func (e *Engine) bury(ctx context.Context, name string) error {
	if name != e.book.process {
		// While the name is held no new process can take it.
		release, err := e.book.hold(ctx, name, buryTime)
		if errors.Is(err, store.ErrLocked) && ctx.Err() == nil {
			return nil // it lives
		}
		if err != nil {
			return err
		}
		defer release()
	}
	list, err := e.book.interrupted(name, func(locale string) string { return wordsFor(locale).interrupted }, e.options.Now())
	if err != nil {
		return err
	}
	for _, i := range list {
		e.options.Logger.Warn("an answer was interrupted when its process ended", "conversation", i.Conversation, "tenant", i.Tenant)
		if e.options.Interrupted != nil {
			e.options.Interrupted(i)
		}
	}
	return nil
}
