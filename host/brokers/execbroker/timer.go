package execbroker

import (
	"sync"
	"time"
)

// timer calls a function at a command's timeout. The time for which it is paused, while a person is asked, does not
// count.
type timer struct {
	mu      sync.Mutex // guards the fields below
	up      func()     // nil once stopped: the runtime may keep a stopped timer, which must not keep the command
	timer   *time.Timer
	started time.Time
	left    time.Duration
	pauses  int
}

// newTimer returns a timer that calls up after ms milliseconds, or never if ms is 0.
func newTimer(ms int64, up func()) *timer {
	t := &timer{up: up, started: time.Now(), left: time.Duration(ms) * time.Millisecond}
	if ms > 0 {
		t.timer = time.AfterFunc(t.left, t.fire)
	}
	return t
}

func (t *timer) fire() {
	t.mu.Lock()
	up := t.up
	t.mu.Unlock()
	if up != nil {
		up()
	}
}

// pause stops the timer until resume is called. Pauses may overlap.
func (t *timer) pause() (resume func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return func() {}
	}
	if t.pauses++; t.pauses == 1 && t.timer.Stop() {
		t.left -= time.Since(t.started)
	}
	return t.resume
}

func (t *timer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses--; t.pauses == 0 {
		t.started = time.Now()
		t.timer.Reset(max(t.left, 0))
	}
}

func (t *timer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.up = nil
	if t.timer != nil {
		t.timer.Stop()
	}
}
