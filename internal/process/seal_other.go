//go:build !linux

package process

// Seal does nothing: only Linux supports it. macOS protects programs that are signed accordingly.
func Seal() error { return nil }
