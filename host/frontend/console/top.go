package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// topItem is one of the tools with the most calls.
type topItem struct {
	Tool     string   `json:"tool"`
	Plugin   string   `json:"plugin"`
	Calls    uint32   `json:"calls"`
	Failures uint32   `json:"failures"`
	P50      float64  `json:"p50Ms"`
	P95      float64  `json:"p95Ms"`
	P99      float64  `json:"p99Ms"`
	Spark    []uint32 `json:"spark"`
}

// topJSON lists the tools with the most calls. Replica is as in seriesJSON.
type topJSON struct {
	listJSON[*topItem]
	Replica string `json:"replica,omitempty"`
}

// sparkPoints is the number of points of a small chart.
const sparkPoints = 30

func (c *Console) top(q *request) (any, error) {
	span, err := q.span()
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	key, ok := map[string]func(*topItem) float64{
		"":         func(i *topItem) float64 { return float64(i.Calls) },
		"calls":    func(i *topItem) float64 { return float64(i.Calls) },
		"failures": func(i *topItem) float64 { return float64(i.Failures) },
		"p95":      func(i *topItem) float64 { return i.P95 },
	}[q.param("by")]
	if !ok {
		return nil, invalid("by must be calls, failures or p95")
	}
	answer := new(topJSON)
	if answer.Items, answer.Replica, err = c.topItems(q, span); err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Items, func(a, b *topItem) int {
		return cmp.Or(cmp.Compare(key(b), key(a)),
			cmp.Compare(a.Tool, b.Tool))
	})
	answer.Items = answer.Items[:min(limit, len(answer.Items))]
	return answer, nil
}

func (c *Console) topItems(q *request, span span) (items []*topItem, replica string, err error) {
	now := c.options.Traffic.now()
	if span == hour {
		replica, err = c.replicaName(q.Context())
		return c.options.Traffic.topOfHour(now), replica, err
	}
	leave, err := c.queue(q)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	items, err = c.topOfPast(q.Context(), span, now)
	return items, "", err
}

// ranking adds up the calls of one tool over a span.
type ranking struct {
	tool, plugin string
	total        point
	spark        []uint32
}

func newRanking(tool, plugin string) *ranking {
	return &ranking{tool: tool, plugin: plugin, spark: make([]uint32, sparkPoints)}
}

// add adds point i of count.
func (r *ranking) add(p *point, i, count int) {
	r.total.merge(p)
	r.spark[i*sparkPoints/count] += p.calls
}

func (r *ranking) item() *topItem {
	t := &r.total
	return &topItem{r.tool, r.plugin, t.calls, t.failures, t.quantile(0.5), t.quantile(0.95), t.quantile(0.99), r.spark}
}

func (t *Traffic) topOfHour(now time.Time) []*topItem {
	items := []*topItem{}
	for _, name := range t.names() {
		if item := t.topItem(name, now); item != nil {
			items = append(items, item)
		}
	}
	return items
}

func (t *Traffic) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.tools))
}

// topItem returns a tool's item for the last hour, or nil if it has no calls. It blocks the recording of calls only
// while it reads one tool.
func (t *Traffic) topItem(name string, now time.Time) *topItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.tools[name]
	if s == nil {
		return nil
	}
	r := newRanking(name, s.plugin)
	for i := range hourPoints {
		if p := s.at(hour.first(now) + int64(i)); p != nil {
			r.add(p, i, hourPoints)
		}
	}
	if r.total.calls == 0 {
		return nil
	}
	return r.item()
}

// topOfPast returns the top tools of a stored span.
func (c *Console) topOfPast(ctx context.Context, span span, now time.Time) ([]*topItem, error) {
	var tools map[string]*ranking
	err := c.read(ctx, span, `tool <> $3`, "", func() func(*tally) {
		tools = map[string]*ranking{}
		return func(t *tally) {
			i, ok := span.place(t.number, now)
			if !ok {
				return
			}
			if tools[t.tool] == nil {
				if len(tools) == maxSeries {
					return
				}
				tools[t.tool] = newRanking(t.tool, t.plugin)
			}
			tools[t.tool].add(&t.point, i, span.points)
		}
	})
	items := []*topItem{}
	for _, r := range tools {
		items = append(items, r.item())
	}
	return items, err
}
