package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// payMonth is the work of one period as freee pays it (work_record_summaries).
type payMonth struct {
	period
	figures    object
	days       []record
	unreadable []unreadable
	// complete says that days holds every day of the period that can be read.
	complete bool
}

// payMonths returns the pay months that share days with m, in order. freee counts by month of payment, so the month that was worked
// may be in the answer for the same month, the next, or, where the period closes on another day than the last, in two of the three
// answers up to the one after next. Each says which days it covers; what follows from that is asked next.
func (f *freee) payMonths(ctx context.Context, employee string, m month) ([]payMonth, error) {
	search := paySearch{freee: f, employee: employee, want: m.days()}
	search.ask(ctx, m)
	for n := 1; n <= 2 && !search.reached(func(p period) bool { return p.End >= search.want.End }); n++ {
		search.ask(ctx, m.add(n))
	}
	if !search.reached(func(p period) bool { return p.Start <= search.want.Start }) {
		search.ask(ctx, m.add(-1))
	}
	if search.err != nil {
		return nil, search.err
	}
	found := slices.DeleteFunc(search.found, func(p payMonth) bool {
		_, shared := p.overlap(search.want)
		return !shared
	})
	if len(found) == 0 {
		return nil, search.nothing(m)
	}
	slices.SortFunc(found, func(a, b payMonth) int { return cmp.Compare(a.Start, b.Start) })
	return found, nil
}

// paySearch asks for one pay month after the other.
type paySearch struct {
	*freee
	employee string
	want     period
	found    []payMonth
	refused  error // freee's first word that a month is not there
	err      error // anything else that went wrong; nothing is asked any more
}

func (s *paySearch) reached(enough func(period) bool) bool {
	return s.err != nil || slices.ContainsFunc(s.found, func(p payMonth) bool { return enough(p.period) })
}

// nothing is the error where no pay month shares a day with m.
func (s *paySearch) nothing(m month) error {
	if s.refused != nil {
		return s.refused
	}
	return s.lang.errorf("freeeには、従業員 %s の %s の勤怠がありません。", "freee has no attendance of employee %s in %s", s.employee, m)
}

// ask adds the pay month to what was found. That it does not exist, for somebody who had not joined or has left, is no error yet.
func (s *paySearch) ask(ctx context.Context, pay month) {
	if s.err != nil {
		return
	}
	found, err := s.summary(ctx, pay)
	var answer *freeeError
	switch {
	case err == nil:
		s.found = append(s.found, *found)
	case errors.As(err, &answer) && (answer.status == statusBadRequest || answer.status == statusNotFound):
		if s.refused == nil {
			s.refused = err
		}
	default:
		s.err = err
	}
}

// summary reads a pay month with its days. Since January 2026 one day with two special leaves makes freee refuse the whole month with
// 400; then the figures are read without days, and the days one by one.
func (s *paySearch) summary(ctx context.Context, pay month) (*payMonth, error) {
	path := fmt.Sprintf("/api/v1/employees/%s/work_record_summaries/%d/%d", s.employee, pay.year, int(pay.month))
	response, err := s.get(ctx, path, s.query("work_records", "true"))
	whole := err == nil
	var answer *freeeError
	if errors.As(err, &answer) && answer.status == statusBadRequest {
		response, err = s.get(ctx, path, s.query())
	}
	if err != nil {
		return nil, err
	}
	d := s.document()
	figures := d.parse(response.Body)
	p := &payMonth{period: period{figures.date("start_date"), figures.date("end_date")}, figures: figures, complete: whole}
	if d.err != nil {
		return nil, d.err
	}
	shared, wanted := p.overlap(s.want)
	switch {
	case !wanted:
		return p, nil
	case !whole:
		return p, s.addDays(ctx, p, shared)
	}
	for _, o := range figures.children("work_records") {
		p.days = append(p.days, freeeDay(o))
	}
	return p, d.err
}

// addDays reads the days that are wanted one by one. A day that freee refuses is noted and left out.
func (s *paySearch) addDays(ctx context.Context, p *payMonth, shared period) error {
	p.complete = shared == p.period
	for day := shared.Start; day <= shared.End; day = day.add(1) {
		response, err := s.get(ctx, fmt.Sprintf("/api/v1/employees/%s/work_records/%s", s.employee, day), s.query())
		var answer *freeeError
		switch {
		case errors.As(err, &answer) && (answer.status == statusBadRequest || answer.status == statusNotFound):
			p.unreadable = append(p.unreadable, unreadable{day, cmp.Or(answer.said, answer.text)})
			continue
		case err != nil:
			return err
		}
		d := s.document()
		p.days = append(p.days, freeeDay(d.parse(response.Body)))
		if d.err != nil {
			return d.err
		}
	}
	return nil
}
