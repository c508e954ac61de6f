//go:build !linux

package sandbox

// yieldThread does nothing: the operating system preempts threads that compute in favor of those that wake up.
func yieldThread() {}
