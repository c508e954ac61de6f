package audit

import (
	"sync/atomic"
	"time"
)

// Stats are figures of a Log, of what this process has written to it.
type Stats struct {
	// Records and Bytes were written, the log's own records included. Failures are events that could not be recorded.
	Records, Bytes, Failures uint64
	// Unsigned is how many records came since the log was signed last.
	Unsigned int
	// Signed is when the log was signed last. It is zero before the first time.
	Signed time.Time
}

// stats are Stats as they grow.
type stats struct {
	records, bytes, failures atomic.Uint64
	unsigned                 atomic.Int64
	signed                   atomic.Int64 // in Unix nanoseconds; 0: not yet
}

// Stats returns the figures as they are now. It waits for nobody.
func (l *Log) Stats() Stats {
	s := Stats{Records: l.stats.records.Load(), Bytes: l.stats.bytes.Load(), Failures: l.stats.failures.Load(),
		Unsigned: int(l.stats.unsigned.Load())}
	if at := l.stats.signed.Load(); at != 0 {
		s.Signed = time.Unix(0, at)
	}
	return s
}

// wrote counts a record of so many bytes.
func (s *stats) wrote(n int) {
	s.records.Add(1)
	s.bytes.Add(uint64(n))
}
