//go:build !linux

package main

import "time"

const notifyReady = ""

func notifyStopping(time.Duration) string { return "" }

func notifyReloading() string { return "" }

// notify tells nobody: systemd is Linux's.
func notify(string) {}
