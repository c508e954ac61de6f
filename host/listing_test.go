package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host"
)

// silent is a guest of the Extism ABI that goes on for ever when it is asked what it offers.
const silent = "\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x00\x01\x7f" + // type 0: () -> i32
	"\x03\x03\x02\x00\x00" + "\x05\x03\x01\x00\x01" + // two functions, a memory
	"\x07\x1c\x03\x06memory\x02\x00\x08describe\x00\x00\x04call\x00\x01" +
	"\x0a\x0f\x02\x08\x00\x03\x40\x0c\x00\x0b\x00\x0b\x04\x00\x41\x00\x0b" // describe: loop, br 0

// TestSilentGuest lets a guest not say what it offers: others come into service in the meantime.
func TestSilentGuest(t *testing.T) {
	t.Parallel()
	active := make(chan host.Status, 10)
	w := newWorld(t, func(o *host.Options) {
		o.Changed = func(now host.Status) {
			if now.State == host.Active {
				active <- now
			}
		}
	})
	w.AskFor(time.Hour)
	w.put("a.wasm", []byte(silent))
	w.put("a.yaml", []byte("name: silent\nversion: 1.0.0\nlimits: {time: 1h, cpu: 100000000}\n"))
	w.consentTo("a.wasm", nil)
	w.put("b.wasm", plugin(t, "hello"))
	w.consentTo("b.wasm", nil)
	loaded := make(chan error, 1)
	go func() { loaded <- w.Load(t.Context()) }()
	if now := <-active; !strings.HasSuffix(now.Path, "b.wasm") {
		t.Errorf("%s is active first", now.Path)
	}
	if status := w.status("a.wasm"); status.State != host.Pending || !strings.Contains(status.Reason, "being listed") {
		t.Errorf("the silent guest is %s: %s", status.State, status.Reason)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-loaded; err != nil {
		t.Error(err)
	}
}

// TestSilentGuestIsBroken: the time of a guest that does not say what it offers is bounded, although its manifest gives
// it more.
func TestSilentGuestIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.AskFor(300 * time.Millisecond)
	w.put("a.wasm", []byte(silent))
	w.put("a.yaml", []byte("name: silent\nversion: 1.0.0\nlimits: {time: 1h, cpu: 100000000}\n"))
	w.consentTo("a.wasm", nil)
	w.load()
	if status := w.status("a.wasm"); status.State != host.Broken ||
		!strings.Contains(status.Reason, "time limit of 300ms") {
		t.Errorf("after its time the silent guest is %s: %s", status.State, status.Reason)
	}
}

// TestCloseWhileAsked closes the host while a guest is being asked.
func TestCloseWhileAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan host.Status, 10)
	w := newWorld(t, func(o *host.Options) {
		o.Changed = func(now host.Status) { asked <- now }
	})
	w.AskFor(time.Hour)
	w.put("a.wasm", []byte(silent))
	w.put("a.yaml", []byte("name: silent\nversion: 1.0.0\nlimits: {time: 1h, cpu: 100000000}\n"))
	w.consentTo("a.wasm", nil)
	loaded := make(chan error, 1)
	go func() { loaded <- w.Load(t.Context()) }()
	if now := <-asked; now.State != host.Pending {
		t.Errorf("the silent guest is %s: %s", now.State, now.Reason)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-loaded; err != nil {
		t.Error(err)
	}
}
