package sandbox

import (
	"slices"
	"unicode/utf8"
)

// Limits of notifications about changed resources per call: their number, and the bytes of a URI. Others are dropped,
// and the first drop is logged.
const (
	maxUpdates   = 256
	maxUpdateURI = 2 << 10
)

// admitUpdate reports whether a URI of that length may be added.
func (c *call) admitUpdate(length int) bool {
	if len(c.updates) < maxUpdates && length <= maxUpdateURI {
		return true
	}
	if !c.dropsUpdates {
		c.dropsUpdates = true
		c.plugin.logger.Warn("some changed resources are not announced: a call may name 256, of 2048 bytes each",
			"tool", c.Tool)
	}
	return false
}

// addUpdate adds the URI of a changed resource.
func (c *call) addUpdate(uri string) {
	if utf8.ValidString(uri) && !slices.Contains(c.updates, uri) {
		c.updates = append(c.updates, uri)
	}
}

// sendUpdates notifies updated, which may be nil.
func (c *call) sendUpdates(updated func(uri string)) {
	if updated == nil {
		return
	}
	for _, uri := range c.updates {
		updated(uri)
	}
}
