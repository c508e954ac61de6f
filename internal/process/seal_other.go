//go:build !linux

package process

// Seal does nothing: only Linux has a switch for it. macOS keeps other processes out by itself where the program is signed so.
func Seal() error { return nil }
