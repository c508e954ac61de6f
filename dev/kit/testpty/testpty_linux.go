// Package testpty opens pseudo-terminals for tests.
package testpty

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// Open opens a pseudo-terminal. master is the end of the person at the keyboard, tty that of the program. The caller
// closes both. The test is skipped, or fails in CI, if the machine has none.
func Open(t testing.TB) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		testprogram.Missing(t, "no pseudo-terminal: "+err.Error())
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, tty
}
