package chat

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/store"
)

// interruption is a turn that had no answer when its process died. Whoever asked is told so at the next turn (NoticeInterrupted), or by the
// door before, if it knows where.
type interruption struct {
	place
	// locale is that of the turn, in which a note now stands in the place of the answer.
	locale string
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
	if name != e.book.process.name() {
		// While the name is held no new process can take it.
		_, release, err := hold(ctx, e.book.store, name, buryTime)
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
		e.options.Logger.Warn("an answer was interrupted when its process ended", "conversation", i.id, "tenant", i.tenant)
	}
	return nil
}
