package server

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// notifyReady notifies the service manager that the process serves (systemd, sd_notify(3)).
const notifyReady = "READY=1"

// notifyStopping returns the notification that the process ends, and how long that takes at most, which may be longer
// than the unit's TimeoutStopSec.
func notifyStopping(most time.Duration) string {
	return fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", most.Microseconds())
}

// notifyReloading returns the notification that the configuration is being read again, and since when.
func notifyReloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return ""
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond))
}

// notify reports a state to the service manager, if there is one. It does not wait for it.
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" || state == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return // the service manager has gone
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte(state))
}
