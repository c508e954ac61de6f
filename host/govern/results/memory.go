package results

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// memory keeps documents in the memory of the process.
type memory struct {
	options *Options

	// mu guards the fields below.
	mu      sync.Mutex
	kept    map[string]*kept // by ID
	callers map[string]*caller
	bytes   int64
}

// caller has the documents of one caller, the oldest first.
type caller struct {
	kept  []*kept
	bytes int64
}

// kept is a document that is kept. It does not change.
type kept struct {
	stored
	id, owner string
	bytes     int64
	expiry    *time.Timer
}

func newMemory(options *Options) *memory {
	return &memory{options: options, kept: map[string]*kept{}, callers: map[string]*caller{}}
}

func (m *memory) add(_ context.Context, owner string, d *document) (id string, expires time.Time, err error) {
	size := d.size()
	own := d.detached()
	id = strings.ToLower(rand.Text())
	added := &kept{stored: *newStored(own), id: id, owner: owner, bytes: size}
	expires = time.Now().Add(m.options.Lifetime)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.callers[owner]; c != nil {
		for len(c.kept) > 0 && c.bytes+size > m.options.PerCaller {
			m.remove(c.kept[0])
		}
	}
	for m.bytes+size > m.options.Total {
		m.remove(m.largest().kept[0])
	}
	c := m.callers[owner]
	if c == nil {
		c = new(caller)
		m.callers[owner] = c
	}
	c.kept = append(c.kept, added)
	c.bytes += size
	m.bytes += size
	m.kept[id] = added
	added.expiry = time.AfterFunc(m.options.Lifetime, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if old := m.kept[id]; old != nil { // the timer may be kept after Stop, and must not keep the document
			m.remove(old)
		}
	})
	return id, expires, nil
}

// largest returns the caller with the most bytes. mu is held, and there is one.
func (m *memory) largest() (most *caller) {
	for _, c := range m.callers {
		if most == nil || c.bytes > most.bytes {
			most = c
		}
	}
	return most
}

// remove removes a document that may be gone already. mu is held.
func (m *memory) remove(gone *kept) {
	if m.kept[gone.id] != gone {
		return
	}
	gone.expiry.Stop()
	delete(m.kept, gone.id)
	c := m.callers[gone.owner]
	for i, other := range c.kept {
		if other == gone {
			c.kept = append(c.kept[:i:i], c.kept[i+1:]...)
			break
		}
	}
	c.bytes -= gone.bytes
	m.bytes -= gone.bytes
	if len(c.kept) == 0 {
		delete(m.callers, gone.owner)
	}
}

func (m *memory) find(_ context.Context, owner, id string) (*stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.kept[id]; found != nil && found.owner == owner {
		return &found.stored, nil
	}
	return nil, errGone
}

func (m *memory) size(context.Context) (count int, bytes int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept), m.bytes, nil
}

// forget does nothing: a timer removes each document.
func (m *memory) forget(context.Context) error { return nil }
