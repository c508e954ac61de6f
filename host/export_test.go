package host

// IndexAtOnce lets the index take in files that have just changed.
func (h *Host) IndexAtOnce() { h.index.settled = 0 }
