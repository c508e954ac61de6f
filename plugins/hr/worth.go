package main

import (
	"cmp"
	"slices"
)

// worth describes how far figures can be relied on.
type worth struct {
	// IsFinal reports whether the month is over and no day of it is incomplete.
	IsFinal        bool            `json:"is_final"`
	IncompleteDays []incompleteDay `json:"incomplete_days"`
	Notes          []string        `json:"notes"`
}

// incompleteDay is a day whose figures are missing or wrong.
type incompleteDay struct {
	Date   date   `json:"date"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// Kinds of incomplete days.
const (
	missingClockIn  = "missing_clock_in"
	missingClockOut = "missing_clock_out"
	missingBreak    = "missing_break_time"
	impossibleTime  = "impossible_time" // an end before its beginning, or breaks that are longer than the work
	vendorFault     = "vendor_fault"    // the vendor marks the day as faulty
	unreadable      = "unreadable"      // the vendor refuses to give the day
	monthRuns       = "month_not_over"
)

// dayFault is one thing that is wrong with a day.
type dayFault struct{ kind, reason string }

// addFault notes a fault of the day, each kind once.
func (r *record) addFault(lang language, kind string) {
	if slices.ContainsFunc(r.faults, func(f dayFault) bool { return f.kind == kind }) {
		return
	}
	reason := map[string]string{
		missingClockIn:  lang.pick("出勤が記録されていません", "a start of work is not recorded"),
		missingClockOut: lang.pick("退勤が記録されていません", "an end of work is not recorded"),
		missingBreak:    lang.pick("休憩の開始または終了が記録されていません", "the start or end of a break is not recorded"),
		impossibleTime: lang.pick("時刻の前後が逆か、休憩が労働時間より長くなっています",
			"an end lies before its start, or the breaks are longer than the work"),
		vendorFault: lang.pick("ベンダーでエラー勤務になっています（打刻漏れなど）",
			"the vendor marks the day as faulty, for example because a clock time is missing"),
	}[kind]
	r.faults = append(r.faults, dayFault{kind, reason})
	r.Notes = append(r.Notes, reason)
}

// judge sets how far the figures of a month can be relied on, from its days. Days from today on are not over, so
// nothing is missing in them yet. The running month is an entry of its own where the answer is about one person;
// otherwise a note on the whole result has it.
func (s *session) judge(w *worth, days []record, m month, withMonth bool) {
	today := dateOf(s.now)
	for _, r := range days {
		if len(r.faults) == 0 || r.Date >= today || !m.days().contains(r.Date) {
			continue
		}
		reasons := make([]string, len(r.faults))
		for i, f := range r.faults {
			reasons[i] = f.reason
		}
		w.IncompleteDays = append(w.IncompleteDays, incompleteDay{r.Date, r.faults[0].kind, s.lang.list(reasons)})
	}
	slices.SortStableFunc(w.IncompleteDays, func(a, b incompleteDay) int { return cmp.Compare(a.Date, b.Date) })
	w.IncompleteDays = slices.Compact(orEmpty(w.IncompleteDays))
	w.IsFinal = !s.runs(m) && len(w.IncompleteDays) == 0
	if s.runs(m) && withMonth {
		w.IncompleteDays = append(w.IncompleteDays, incompleteDay{today, monthRuns, s.monthRuns(m)})
	}
	w.Notes = orEmpty(w.Notes)
}

// runs reports a month whose last day is not over.
func (s *session) runs(m month) bool { return dateOf(s.now) <= m.days().End }

func (s *session) monthRuns(m month) string {
	return s.lang.sprintf("%sはまだ終わっていません。%s以降の分は確定していません。",
		"the month %s is not over: the days from %s on are not final",
		m, dateOf(s.now))
}

// begun refuses a month that has not begun, which vendors answer with zeros.
func (s *session) begun(m month) error {
	if today := dateOf(s.now); m.days().Start > today {
		return s.lang.errorf("%s はまだ始まっていません（今日は %s）。始まった月を指定してください。",
			"the month %s has not begun, today is %s: ask for a month that has", m, today)
	}
	return nil
}
