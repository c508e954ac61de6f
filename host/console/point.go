package console

import "time"

const (
	// Durations are counted in buckets. The first ends at firstBound, each further one at twice the previous bound.
	buckets    = 20
	firstBound = 250 * time.Microsecond
)

// point counts the calls of one step of time. Its number is the number of steps since 1970.
type point struct {
	number          int64
	calls, failures uint32
	durations       [buckets]uint32
}

func (p *point) add(bucket int, failed bool) {
	p.calls++
	if failed {
		p.failures++
	}
	p.durations[bucket]++
}

// merge adds the calls of another point.
func (p *point) merge(other *point) {
	p.calls += other.calls
	p.failures += other.failures
	for i, c := range other.durations {
		p.durations[i] += c
	}
}

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	bound := firstBound
	for i := range buckets - 1 {
		if d <= bound {
			return i
		}
		bound *= 2
	}
	return buckets - 1
}

// quantile estimates the q-quantile of the durations, in milliseconds. It is 0 without calls.
func (p *point) quantile(q float64) float64 {
	rank, below := q*float64(p.calls), 0.0
	low, high := 0.0, milliseconds(firstBound)
	for _, count := range p.durations {
		if n := float64(count); n > 0 && below+n >= rank {
			return low + (high-low)*max(0, rank-below)/n
		} else {
			below += n
		}
		low, high = high, 2*high
	}
	return 0
}
