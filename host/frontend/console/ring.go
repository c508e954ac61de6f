package console

import "time"

// series has the calls of one name: of the last hour, as a ring in which point n is at index n modulo hourPoints, and
// of the current steps of longer spans. It takes 3.3 KB, and 112 bytes for each point with calls: at most 44 KB.
type series struct {
	plugin string
	// last is the number of the newest point.
	last    int64
	points  [hourPoints]*point // nil for no calls
	tallies [len(saved)]tally
}

// ringPlace returns the index of the point n.
func ringPlace(n int64) int64 { return (n%hourPoints + hourPoints) % hourPoints }

func (s *series) add(now time.Time, took time.Duration, failed bool) {
	n := hour.number(now)
	p := s.points[ringPlace(n)]
	if p == nil {
		p = new(point)
		s.points[ringPlace(n)] = p
	}
	if p.number != n {
		*p = point{number: n}
	}
	s.last = max(s.last, n)
	p.add(took, failed)
}

// at returns the point with the number, or nil if it has no calls.
func (s *series) at(n int64) *point {
	if p := s.points[ringPlace(n)]; p != nil && p.number == n {
		return p
	}
	return nil
}

// list returns the points of the last hour, of which the newest contains now.
func (s *series) list(now time.Time) []*point {
	list := make([]*point, hourPoints)
	for i := range list {
		if p := s.at(hour.first(now) + int64(i)); p != nil {
			copied := *p
			list[i] = &copied
		}
	}
	return list
}

// sum adds up the last count points.
func (s *series) sum(now time.Time, count int) *point {
	total := new(point)
	for n := hour.number(now) - int64(count) + 1; n <= hour.number(now); n++ {
		if p := s.at(n); p != nil {
			total.merge(p)
		}
	}
	return total
}

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
	// slowest is the longest duration. Zero means unknown.
	slowest time.Duration
}

func (p *point) add(took time.Duration, failed bool) {
	p.calls++
	if failed {
		p.failures++
	}
	p.durations[bucketOf(took)]++
	p.slowest = max(p.slowest, took)
}

// merge adds the calls of another point.
func (p *point) merge(other *point) {
	p.calls += other.calls
	p.failures += other.failures
	for i, c := range other.durations {
		p.durations[i] += c
	}
	p.slowest = max(p.slowest, other.slowest)
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

// quantile estimates the q-quantile of the durations, in milliseconds, as if those of a bucket were spread evenly over
// it. No estimate exceeds the longest duration: a single call of 1.1 s would else be shown with a p95 of 2 s. It is 0
// without calls.
func (p *point) quantile(q float64) float64 {
	rank, below := q*float64(p.calls), 0.0
	low, high := 0.0, milliseconds(firstBound)
	for i, count := range p.durations {
		if n := float64(count); n > 0 && below+n >= rank {
			if slowest := milliseconds(p.slowest); slowest > low && (slowest < high || i == buckets-1) {
				high = slowest // the last bucket has no bound
			}
			return low + (high-low)*max(0, rank-below)/n
		} else {
			below += n
		}
		low, high = high, 2*high
	}
	return 0
}
