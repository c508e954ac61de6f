//go:build !windows

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// sequences reports whether terminals of this system interpret control sequences.
const sequences = true

// onResize calls resized when the size of the terminal changes, until stop is called.
func onResize(resized func()) (stop func()) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-changes:
				resized()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changes)
		close(ended)
	}
}
