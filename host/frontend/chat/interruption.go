package chat

import (
	"context"
)

// interruption is a turn without an answer whose process died. The person is notified at the next turn
// (NoticeInterrupted), or earlier by the frontend.
type interruption struct {
	place
	// locale is the language of the turn and of the note that replaces the answer.
	locale string
}

// endInterrupted ends the turns of dead processes.
func (e *Engine) endInterrupted(ctx context.Context) error {
	names, err := e.conversations.processes(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := e.endTurnsOf(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// endTurnsOf ends the turns of the named process if it is dead. An earlier process with this process's own name is.
func (e *Engine) endTurnsOf(ctx context.Context, name string) error {
	if name != e.conversations.process.name() {
		// While the name is locked no new process can acquire it.
		release, err := e.conversations.store.LockDead(ctx, lockName(name))
		if err != nil || release == nil {
			return err
		}
		defer release()
	}
	list, err := e.conversations.endInterrupted(name,
		func(locale string) string { return wordsFor(locale).interrupted }, e.options.Now())
	if err != nil {
		return err
	}
	for _, i := range list {
		e.options.Logger.Warn("an answer was interrupted when its process ended", "conversation", i.id, "tenant",
			i.tenant)
	}
	return nil
}
