//go:build !linux

package sandbox

// yieldThread does nothing: the operating system preempts computing threads in favor of woken ones.
func yieldThread() {}
