package sandbox

import "golang.org/x/sys/unix"

// yieldThread lets the operating system run another thread that waits for this processor. If none waits, it costs some 0.3 us.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
