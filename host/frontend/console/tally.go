package console

import "time"

// tally counts the calls of one name in one step of a span, in this process.
type tally struct {
	span         string
	tool, plugin string
	point
	// fresh reports whether it has calls that are not stored yet.
	fresh bool
}

// maxLate bounds the tallies of past steps that are not stored yet, because the store cannot be written. They take 0.7
// MB.
const maxLate = 4 * maxSeries

// tally counts a call of the series with the name. The caller holds mu.
func (t *Traffic) tally(name string, s *series, now time.Time, took time.Duration, failed bool) {
	for i, span := range saved {
		current := &s.tallies[i]
		if n := span.number(now); current.number != n {
			t.late = current.appendFresh(t.late)
			*current = tally{span: span.name, tool: name, plugin: s.plugin, point: point{number: n}}
		}
		current.point.add(took, failed)
		current.fresh = true
	}
	t.late = newest(t.late)
}

// appendFresh appends the tally to a list if it has calls that are not stored yet.
func (t *tally) appendFresh(list []tally) []tally {
	if t.fresh {
		list = append(list, *t)
	}
	return list
}

// newest returns the newest maxLate tallies.
func newest(list []tally) []tally { return list[max(0, len(list)-maxLate):] }

// take removes and returns the tallies that are not stored yet, oldest first. giveBack returns those that could not be
// stored.
func (t *Traffic) take() []tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.late
	t.late = nil
	take := func(s *series) {
		for i := range s.tallies {
			list = s.tallies[i].appendFresh(list)
			s.tallies[i].fresh = false
		}
	}
	take(t.all)
	for _, s := range t.tools {
		take(s)
	}
	return list
}

func (t *Traffic) giveBack(list []tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = newest(append(list, t.late...)) // a later tally of the same step replaces it
}
