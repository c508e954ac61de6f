//go:build !linux

package server

import "time"

const notifyReady = ""

func notifyStopping(time.Duration) string { return "" }

func notifyReloading() string { return "" }

// notify does nothing: systemd is only on Linux.
func notify(string) {}
