//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups are the process's orders to read the configuration again, until stop is called. Orders that come while one
// waits are that one.
func hangups() (orders <-chan os.Signal, stop func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	return caught, func() { signal.Stop(caught) }
}
