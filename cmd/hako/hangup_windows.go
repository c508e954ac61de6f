package main

import "os"

// hangups are none: Windows has no such signal.
func hangups() (orders <-chan os.Signal, stop func()) { return nil, func() {} }
