package process

import "os"

// Hangups returns no signals: Windows has no SIGHUP.
func Hangups() (orders <-chan os.Signal, stop func()) { return nil, func() {} }
