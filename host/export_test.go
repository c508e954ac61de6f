package host

import "time"

// IndexAtOnce lets the index take in files that have just changed.
func (h *Host) IndexAtOnce() { h.index.settled = 0 }

// AskFor bounds how long a guest is asked what it offers.
func (h *Host) AskFor(limit time.Duration) { h.listings.time = limit }
