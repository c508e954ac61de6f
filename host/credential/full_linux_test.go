package credential

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// limitFiles limits the size of a process's files, which has the effect of a full disk.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Error(err)
	}
}

// TestFullDiskBeforeRenewal: a renewal is not sent if its start cannot be stored, so the refresh token stays valid.
func TestFullDiskBeforeRenewal(t *testing.T) {
	t.Parallel()
	s, server, dir := shared(t, -time.Minute)
	p := start(t, dir, server)
	limitFiles(t, p.Process.Pid, 0)
	p.send(t, "get")
	if got := p.answer(t); !strings.Contains(got, "the credential freee cannot be read from the store") ||
		!strings.Contains(got, "the disk is full") {
		t.Errorf("got %s", got)
	}
	if n := s.refreshes(); n != 0 {
		t.Errorf("%d renewals", n)
	}
	limitFiles(t, p.Process.Pid, unix.RLIM_INFINITY)
	if got := token(t, newBroker(t, options(dir, freeeSpec(server))), ""); got != "access-0001" {
		t.Errorf("with room: %s", got)
	}
}

// TestFullDiskAfterRenewal: new tokens that cannot be stored are not used, and are stored as soon as there is room.
func TestFullDiskAfterRenewal(t *testing.T) {
	t.Parallel()
	s, server, dir := shared(t, -time.Minute)
	p := start(t, dir, server)
	s.before = func(http.ResponseWriter, url.Values) bool {
		limitFiles(t, p.Process.Pid, 0)
		return false
	}
	for range 2 {
		p.send(t, "get")
		if got := p.answer(t); !strings.Contains(got, "cannot be stored") ||
			!strings.Contains(got, "the disk is full") {
			t.Errorf("got %s", got)
		}
	}
	limitFiles(t, p.Process.Pid, unix.RLIM_INFINITY)
	got := ""
	testwait.Until(t, func() bool { p.send(t, "get"); got = p.answer(t); return got == "access-0001" })
	if n := s.refreshes(); got != "access-0001" || n != 1 {
		t.Errorf("with room: %s after %d renewals", got, n)
	}
	if got := token(t, newBroker(t, options(dir, freeeSpec(server))), ""); got != "access-0001" {
		t.Errorf("another process: %s", got)
	}
}
