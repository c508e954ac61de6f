package console

import (
	"context"
	"net/http"
	"net/url"
	"time"
	"unsafe"
)

// RouteNames are the endpoints of the API.
func RouteNames() []string {
	var names []string
	for _, r := range routes {
		names = append(names, r.name)
	}
	return names
}

// NewTrafficAt is NewTraffic with another clock.
func NewTrafficAt(now func() time.Time) *Traffic { return newTraffic(now) }

// Limits of what is kept.
const (
	MaxSeries, MaxFailures, MaxStreamsPerPerson, StreamQueue = maxSeries, maxFailures, maxStreamsPerPerson, streamQueue
	MaxRunning, MaxFinished                                  = maxRunning, maxFinished
)

// Sizes reports how many series and failures there are.
func (t *Traffic) Sizes() (series, failures int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tools), len(t.failures)
}

// Late returns the number of counts of past steps that are not stored yet.
func (t *Traffic) Late() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.late)
}

// SeriesBytes is the largest size of a series, MaxLate the largest number of counts that wait for the store.
const (
	SeriesBytes = unsafe.Sizeof(series{}) + hourPoints*unsafe.Sizeof(point{})
	MaxLate     = maxLate
)

// Save saves what has been counted, as Run does.
func (c *Console) Save(ctx context.Context) error { return c.save(ctx, 0) }

// DecodeDurations reads counts as they are in the store, and EncodeDurations writes them so.
func DecodeDurations(data []byte) (counts [buckets]uint32, slowest time.Duration, err error) {
	p := new(point)
	err = decodeDurations(data, p)
	return p.durations, p.slowest, err
}
func EncodeDurations(counts [buckets]uint32, slowest time.Duration) []byte {
	return encodeDurations(&point{durations: counts, slowest: slowest})
}

// Addresses returns the number of addresses with attempts.
func (c *Console) Addresses() int { return c.attempts.Addresses() }

// Look looks for changes once, as Run does.
func (c *Console) Look(r *http.Request) func() {
	w := &watcher{console: c}
	return func() { w.look(r.Context()) }
}

// ParseSearch parses the parameters of a search.
func ParseSearch(query string) error {
	q := &request{Request: &http.Request{URL: &url.URL{RawQuery: query}}}
	if err := checkQuery(q.Request, auditParameters); err != nil {
		return err
	}
	_, err := newSearch(q)
	return err
}

// ParseCursor and FormatCursor are those of lists, ParseFlow reads the cookie of a login.
func ParseCursor(text string) (string, error) { return parseCursor(text) }
func FormatCursor(key string) string          { return formatCursor(key) }
func ParseFlow(text string) bool              { return parseFlow(text) != nil }

// Files are the page's, by path, as they are sent compressed.
func Files() map[string]int {
	sizes := map[string]int{}
	for name, f := range pages() {
		if name == japaneseIndex {
			continue
		}
		sizes[name] = len(f.plain)
		if f.small != nil {
			sizes[name] = len(f.small)
		}
	}
	return sizes
}

// Advised lists the outcomes for which there is an advice.
func Advised() []string {
	var list []string
	for o := range advices {
		list = append(list, string(o))
	}
	return list
}

// Failed reports whether an outcome is a failure.
var Failed = failed

// Streams returns the number of open streams.
func (c *Console) Streams() int64 { return c.options.Traffic.hub.count.Load() }

// Sharing returns a function that stores the running calls for other replicas, as Run does. StopRequested stops those
// that are to be stopped.
func (c *Console) Sharing() func(ctx context.Context) error {
	last := new(sharedCalls)
	return func(ctx context.Context) error { return c.share(ctx, last, 0) }
}
func (c *Console) StopRequested(ctx context.Context) error { return c.stopRequested(ctx) }
