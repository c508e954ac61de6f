package sandbox

import (
	"slices"
	"unicode/utf8"
)

// Bounds of what one call may say of changed resources: how many, and the bytes of a URI. What passes them is dropped, and logged once.
const (
	maxUpdates   = 256
	maxUpdateURI = 2 << 10
)

// mayUpdate says whether one more URI of that length may be named.
func (c *call) mayUpdate(length int) bool {
	if len(c.updates) < maxUpdates && length <= maxUpdateURI {
		return true
	}
	if !c.dropsUpdates {
		c.dropsUpdates = true
		c.plugin.logger.Warn("nobody is told of some resources that changed: a call may name 256, of 2048 bytes each", "tool", c.Tool)
	}
	return false
}

// update notes that the resource with this URI has changed.
func (c *call) update(uri string) {
	if utf8.ValidString(uri) && !slices.Contains(c.updates, uri) {
		c.updates = append(c.updates, uri)
	}
}

// passUpdates passes on what has changed.
func (c *call) passUpdates(updated func(uri string)) {
	if updated == nil {
		return
	}
	for _, uri := range c.updates {
		updated(uri)
	}
}
