package console

import "time"

// tally counts the calls of one name in one step of a span, as far as this process has seen them.
type tally struct {
	span         string
	tool, plugin string
	point
	// fresh says that there are calls in it that the store does not have.
	fresh bool
}

// maxLate bounds the tallies of steps that are over and are not in the store yet, because that cannot be written. They
// take 0.7 MB.
const maxLate = 4 * maxSeries

// tally counts a call of the series with the name. mu is held.
func (t *Traffic) tally(name string, s *series, now time.Time, bucket int, failed bool) {
	for i, span := range saved {
		current := &s.tallies[i]
		if n := span.number(now); current.number != n {
			t.late = current.appendFresh(t.late)
			*current = tally{span: span.name, tool: name, plugin: s.plugin, point: point{number: n}}
		}
		current.point.add(bucket, failed)
		current.fresh = true
	}
	t.late = newest(t.late)
}

// appendFresh appends the tally to a list, if there is something in it that the store does not have.
func (t *tally) appendFresh(list []tally) []tally {
	if t.fresh {
		list = append(list, *t)
	}
	return list
}

// newest are as many as are kept.
func newest(list []tally) []tally { return list[max(0, len(list)-maxLate):] }

// take returns what is not in the store yet, the oldest first. What cannot be written there goes back with giveBack.
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
	t.late = newest(append(list, t.late...)) // a newer count of the same step comes after it, and counts
}
