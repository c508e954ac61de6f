//go:build !windows

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangups returns the SIGHUPs to this process, which order it to read its configuration again, until stop is called.
// While one waits, further ones are dropped. On Windows there are none.
func Hangups() (orders <-chan os.Signal, stop func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	return caught, func() { signal.Stop(caught) }
}
