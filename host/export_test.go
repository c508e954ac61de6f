package host

import (
	"context"
	"errors"
	"time"
)

// IndexAtOnce lets the index take in files that have just changed.
func (h *Host) IndexAtOnce() { h.index.settled = 0 }

// KeepCopies marks the copies of plugins in service as used, as a host does once a day.
func (h *Host) KeepCopies() { h.keepCopies() }

// AskFor bounds how long a guest is asked what it offers.
func (h *Host) AskFor(limit time.Duration) { h.listings.time = limit }

// Prepare waits until the plugins in service are compiled.
func (h *Host) Prepare(ctx context.Context) (err error) {
	for _, s := range h.unprepared() {
		err = errors.Join(err, s.sandbox.Prepare(ctx))
	}
	return err
}

// Service tells one service of a plugin from another.
func (h *Host) Service(name string) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.service != nil && p.service.name == name {
			return p.service
		}
	}
	return nil
}
