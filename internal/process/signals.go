package process

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// IgnoreBrokenPipes turns SIGPIPE, which follows a client's closing of this process's standard output, into an error of
// the write. Otherwise the signal would end the process in the middle of its work. undo restores that. signal.Ignore is
// no alternative, because programs that this process starts would inherit it.
func IgnoreBrokenPipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// OnStuck calls do if cancel is not called within limit() after the end of ctx: something does not end, such as a
// request to a file system that does not answer. do gets the limit.
func OnStuck(ctx context.Context, limit func() time.Duration, do func(limit time.Duration)) (cancel func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		most := limit()
		select {
		case <-time.After(most):
			do(most)
		case <-ended:
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}
