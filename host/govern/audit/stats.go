package audit

import (
	"sync/atomic"
	"time"
)

// Stats are counts of what this process has written to a Log.
type Stats struct {
	// Records and Bytes include the log's own records. Failures counts events that could not be recorded.
	Records, Bytes, Failures uint64
	// Unsigned is the number of records since the last checkpoint.
	Unsigned int
	// Signed is the time of the last checkpoint, or zero.
	Signed time.Time
}

// stats has the values of Stats.
type stats struct {
	records, bytes, failures atomic.Uint64
	unsigned                 atomic.Int64
	signed                   atomic.Int64 // in Unix nanoseconds; 0 before the first checkpoint
}

// Stats returns the current values. It does not block.
func (l *Log) Stats() Stats {
	s := Stats{Records: l.stats.records.Load(), Bytes: l.stats.bytes.Load(), Failures: l.stats.failures.Load(),
		Unsigned: int(l.stats.unsigned.Load())}
	if at := l.stats.signed.Load(); at != 0 {
		s.Signed = time.Unix(0, at)
	}
	return s
}

// wrote counts a record of n bytes.
func (s *stats) wrote(n int) {
	s.records.Add(1)
	s.bytes.Add(uint64(n))
}
