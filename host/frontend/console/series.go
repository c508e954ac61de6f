package console

import (
	"context"
	"time"

	"github.com/hako-run/hako/host/store"
)

// span is the time that charts cover, up to now, in points of one step each.
type span struct {
	name   string
	step   time.Duration
	points int
}

// hourPoints is the number of points of the hour.
const hourPoints = 360

// The hour is in the memory of each process, for its own calls. The other spans are in the store, for the calls of all
// processes.
var (
	hour  = span{"hour", 10 * time.Second, hourPoints}
	saved = [...]span{{"day", 10 * time.Minute, 144}, {"week", time.Hour, 168}}
)

// number returns the number of the step that contains now, first that of the oldest step of the span.
func (s span) number(now time.Time) int64 { return now.UnixNano() / int64(s.step) }
func (s span) first(now time.Time) int64  { return s.number(now) - int64(s.points) + 1 }

// place returns the index in the span of the point with the number.
func (s span) place(number int64, now time.Time) (i int, ok bool) {
	i = int(number - s.first(now))
	return i, i >= 0 && i < s.points
}

// span returns the requested span.
func (q *request) span() (span, error) {
	name := q.param("span")
	if name == "" || name == hour.name {
		return hour, nil
	}
	for _, s := range saved {
		if s.name == name {
			return s, nil
		}
	}
	return span{}, invalid("span must be hour, day or week")
}

// seriesJSON has points over time: calls, failures, and durations in milliseconds, null without calls. Step is in
// seconds.
type seriesJSON struct {
	Step   int       `json:"step"`
	From   time.Time `json:"from"`
	Points [][5]any  `json:"points"`
	// Replica is the process whose calls these are, or empty for those of all processes.
	Replica string `json:"replica,omitempty"`
}

func (c *Console) series(q *request) (any, error) {
	span, err := q.span()
	if err != nil {
		return nil, err
	}
	now, tool := c.options.Traffic.now(), q.param("tool")
	if span != hour {
		points, err := c.past(q.Context(), span, tool, now)
		if err != nil {
			return nil, err
		}
		return span.json(points, now), nil
	}
	answer := span.json(c.options.Traffic.lastHour(tool, now), now)
	answer.Replica, err = c.replicaName(q.Context())
	return answer, err
}

// replicaName returns the name of this process if there are others, whose calls it does not know, or else "".
func (c *Console) replicaName(ctx context.Context) (string, error) {
	replicas, err := c.options.Store.Replicas(ctx)
	return c.ownName(replicas), err
}

// ownName returns the name of this process among replicas, or "" if there are no others.
func (c *Console) ownName(replicas []store.Replica) string {
	if len(replicas) < 2 {
		return ""
	}
	for i := range replicas {
		if replicas[i].ID == c.options.Store.Replica() {
			return nameOf(&replicas[i])
		}
	}
	return c.options.Store.Replica()
}

func nameOf(r *store.Replica) string { return r.Host + " " + r.ID[:min(len(r.ID), 12)] }

func (s span) json(points []*point, now time.Time) *seriesJSON {
	answer := &seriesJSON{Step: int(s.step.Seconds()), From: time.Unix(0, s.first(now)*int64(s.step)).UTC(),
		Points: make([][5]any, len(points))}
	for i, p := range points {
		answer.Points[i] = [5]any{0, 0, nil, nil, nil}
		if p != nil && p.calls > 0 {
			answer.Points[i] = [5]any{p.calls, p.failures, p.quantile(0.5), p.quantile(0.95), p.quantile(0.99)}
		}
	}
	return answer
}

// lastHour returns the points of a tool, or of all calls if tool is "".
func (t *Traffic) lastHour(tool string, now time.Time) []*point {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all
	if tool != "" {
		s = t.tools[tool]
	}
	if s == nil {
		s = new(series)
	}
	return s.list(now)
}

// past returns the points of a tool over a stored span, or of all calls if tool is "".
func (c *Console) past(ctx context.Context, span span, tool string, now time.Time) (points []*point, err error) {
	err = c.read(ctx, span, `tool = $3`, tool, func() func(*tally) {
		points = make([]*point, span.points)
		return func(t *tally) {
			i, ok := span.place(t.number, now)
			if !ok {
				return
			}
			if points[i] == nil {
				points[i] = new(point)
			}
			points[i].merge(&t.point)
		}
	})
	return points, err
}
