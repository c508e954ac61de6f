package policy

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hako-run/hako/host/govern/secretscan"
)

// Live is a policy file that is reloaded when it changes. It is safe for concurrent use.
type Live struct {
	path   string
	policy atomic.Pointer[Policy]

	// mu serializes Reload and guards the fields below.
	mu       sync.Mutex
	text     []byte
	err      error
	watchers map[int]func()
	next     int
}

// OpenLive reads the policy at path. Until a missing file appears, everything is allowed. An invalid file is an error.
func OpenLive(path string) (*Live, error) {
	l := &Live{path: path}
	l.policy.Store(allowAll())
	if _, err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

func allowAll() *Policy {
	return &Policy{id: "none", defaults: Allow, Secrets: secretscan.Default(), cache: map[relevantKey][]*Rule{}}
}

// Policy returns the current policy.
func (l *Live) Policy() *Policy { return l.policy.Load() }

// Path returns the path of the file.
func (l *Live) Path() string { return l.path }

// Err returns the error of the file, if its content is not the current policy.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Reload reads the file again. If it is invalid or missing, the current policy stays; an empty policy removes all
// rules. Reload reports whether the policy has changed.
func (l *Live) Reload() (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := os.ReadFile(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && l.text == nil:
		return false, nil
	case err == nil && l.err == nil && bytes.Equal(text, l.text):
		return false, nil
	}
	var p *Policy
	if err != nil {
		err = readError(err)
	} else {
		p, err = parseFile(l.path, text)
	}
	if l.err = err; err != nil {
		return false, err
	}
	l.text = text
	l.policy.Store(p)
	for _, changed := range l.watchers {
		changed()
	}
	return true, nil
}

// Watch calls changed after every change of the policy until stop is called. changed must be quick and must not call
// Reload or Watch.
func (l *Live) Watch(changed func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers = map[int]func(){}
	}
	id := l.next
	l.next++
	l.watchers[id] = changed
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, id)
	}
}
