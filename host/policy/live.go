package policy

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hako-run/hako/host/secretscan"
)

// Live is a policy file that may change. It is safe for concurrent use.
type Live struct {
	path   string
	policy atomic.Pointer[Policy]

	// mu serialises Reload and guards what follows.
	mu      sync.Mutex
	text    []byte
	err     error
	watches map[int]func()
	next    int
}

// OpenLive reads the policy at path. A file that is missing is a policy that allows everything, until it appears. One that is wrong is an
// error: nothing starts under rules that nobody wrote.
func OpenLive(path string) (*Live, error) {
	l := &Live{path: path}
	l.policy.Store(empty())
	if _, err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

func empty() *Policy {
	return &Policy{defaults: Allow, Secrets: secretscan.Default(), relevant: map[identity][]*Rule{}}
}

// Policy is the policy in force.
func (l *Live) Policy() *Policy { return l.policy.Load() }

// Err says what is wrong with the file, if it is not the one in force.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Reload reads the file again. If it is wrong, the policy in force stays, and so it does when the file is gone: taking away the rules
// takes an empty policy. It reports whether another policy is in force now.
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
	p, err := Open(l.path)
	if l.err = err; err != nil {
		return false, err
	}
	l.text = text
	l.policy.Store(p)
	for _, changed := range l.watches {
		changed()
	}
	return true, nil
}

// Watch calls changed whenever another policy is in force, until stop is called. changed must be quick and must not call Reload or Watch.
func (l *Live) Watch(changed func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches == nil {
		l.watches = map[int]func(){}
	}
	id := l.next
	l.next++
	l.watches[id] = changed
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watches, id)
	}
}
