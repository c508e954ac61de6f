package sandbox

import "golang.org/x/sys/unix"

// yieldThread lets the operating system run another thread on this processor. If none waits, it costs some 0.3 us.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
