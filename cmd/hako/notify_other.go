//go:build !linux

package main

const notifyReady, notifyStopping = "", ""

func notifyReloading() string { return "" }

// notify tells nobody: systemd is Linux's.
func notify(string) {}
