package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// payMonth is the work of one period as freee pays it (work_record_summaries).
type payMonth struct {
	period
	offset     int // in months from the calendar month that was asked for to the one that freee calls it by
	figures    object
	days       []record
	unreadable []incompleteDay
	// complete reports whether days holds every day of the period that can be read.
	complete bool
}

// payMonths returns the pay months that share days with m, in order. freee counts by month of payment, so the month
// that was worked may be in the answer for the same month, the next, or, where the period closes on another day than
// the last, in two of the three answers up to the one after next. Each says which days it covers; what follows from
// that is asked next. What was found for the person before is asked first.
func (f *freee) payMonths(ctx context.Context, employee string, m month) ([]payMonth, error) {
	search := paySearch{freee: f, employee: employee, month: m, want: m.days(), asked: map[int]bool{}}
	for _, offset := range f.offsets {
		search.ask(ctx, offset)
	}
	for offset := 0; offset <= 2 && !search.reached(func(p period) bool { return p.End >= search.want.End }); offset++ {
		search.ask(ctx, offset)
	}
	if !search.reached(func(p period) bool { return p.Start <= search.want.Start }) {
		search.ask(ctx, -1)
	}
	if search.err != nil {
		return nil, search.err
	}
	found := slices.DeleteFunc(search.found, func(p payMonth) bool {
		_, shared := p.overlap(search.want)
		return !shared
	})
	if len(found) == 0 {
		return nil, search.nothing()
	}
	slices.SortFunc(found, func(a, b payMonth) int { return cmp.Compare(a.Start, b.Start) })
	f.offsets = nil
	for _, p := range found {
		f.offsets = append(f.offsets, p.offset)
	}
	return found, nil
}

// paySearch asks for one pay month after the other.
type paySearch struct {
	*freee
	employee string
	month    month
	want     period
	asked    map[int]bool
	found    []payMonth
	refused  error        // freee's first word that a month is not there
	person   *freeePerson // once a month was refused: whose it is, nil if the user may not know
	err      error        // anything else that went wrong; nothing is asked any more
}

func (s *paySearch) reached(enough func(period) bool) bool {
	return s.err != nil || slices.ContainsFunc(s.found, func(p payMonth) bool { return enough(p.period) })
}

// nothing is the error where no pay month shares a day with the month.
func (s *paySearch) nothing() error {
	if s.refused != nil {
		return s.refused
	}
	return &dataError{s.lang.errorf("freeeには、従業員 %s の %s の勤怠がありません。", "freee has no attendance of employee %s in %s",
		s.employee, s.month)}
}

// ask adds the pay month to what was found, unless it was asked for before or cannot be there. That it does not exist,
// for somebody who had not joined or has left, is no error yet.
func (s *paySearch) ask(ctx context.Context, offset int) {
	if s.err != nil || s.asked[offset] || s.person != nil && !s.person.paidFor(s.month.add(offset), s.want) {
		return
	}
	s.asked[offset] = true
	found, err := s.summary(ctx, s.month.add(offset))
	var answer *vendorError
	switch {
	case err == nil:
		found.offset = offset
		s.found = append(s.found, *found)
	case errors.As(err, &answer) && answer.isMissing():
		if s.refused == nil {
			s.refused = err
			s.findPerson(ctx)
		}
	default:
		s.err = err
	}
}

// findPerson looks up a person whose month freee refused, so that nothing is asked for in vain: the list of employees
// says in which pay months there can be work. A user who may not read that list asks on.
func (s *paySearch) findPerson(ctx context.Context) {
	people, err := s.everybody(ctx)
	var answer *vendorError
	switch {
	case errors.As(err, &answer) && answer.status == statusForbidden:
		return
	case err != nil:
		s.err = err
		return
	}
	if s.person = people[s.employee]; s.person == nil {
		s.err = s.refused
	}
}

// everybody reads the list of employees, once per call.
func (f *freee) everybody(ctx context.Context) (map[string]*freeePerson, error) {
	if f.people == nil {
		if err := f.join(dateOf(f.now)).everybody(ctx); err != nil {
			return nil, err
		}
	}
	return f.people, nil
}

// paidFor reports whether the pay month can have days of the period on which the person was employed. Where freee does
// not say how the person is paid, it can.
func (p *freeePerson) paidFor(pay month, in period) bool {
	if !p.onPayroll || p.closingDay < 1 {
		return true
	}
	if p.paidNextMonth {
		pay = pay.add(-1)
	}
	worked := period{pay.add(-1).closing(p.closingDay).add(1), pay.closing(p.closingDay)}
	shared, ok := worked.overlap(in)
	return ok && p.employedIn(shared)
}

// monthsOf is the path of all pay months of an employee, and monthPath that of one.
func monthsOf(employee string) string {
	return "/api/v1/employees/" + employee + "/work_record_summaries/"
}

func monthPath(employee string, pay month) string {
	return fmt.Sprintf("%s%d/%d", monthsOf(employee), pay.year, int(pay.month))
}

// withDays is the query for a pay month with its days.
func (f *freee) withDays() url.Values { return f.query("work_records", "true") }

// specialLeave is in the message of a refusal that is about a day with two special leaves.
const specialLeave = "特別休暇"

// summary reads a pay month with its days. Since January 2026 one day with two special leaves makes freee refuse the
// whole month with 400; then the figures are read without days, and the days one by one.
func (s *paySearch) summary(ctx context.Context, pay month) (*payMonth, error) {
	path := monthPath(s.employee, pay)
	response, err := s.get(ctx, path, s.withDays())
	whole := err == nil
	var answer *vendorError
	if errors.As(err, &answer) && answer.status == statusBadRequest && strings.Contains(answer.said, specialLeave) {
		response, err = s.get(ctx, path, s.query())
	}
	if err != nil {
		return nil, err
	}
	d := s.document()
	figures := d.parse(response.Body)
	p := &payMonth{period: period{figures.date("start_date"), figures.date("end_date")}, figures: figures,
		complete: whole}
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

// addDays reads the days that are wanted one by one, several at once. A day that freee refuses is noted and left out,
// and so are days for which there is no time.
func (s *paySearch) addDays(ctx context.Context, p *payMonth, shared period) error {
	p.complete = shared == p.period
	path := "/api/v1/employees/" + s.employee + "/work_records/"
	defer s.cancel(path)
	s.makeRoom()
	for day, ahead := shared.Start, shared.Start; day <= shared.End; day = day.add(1) {
		if timeIsShort(ctx) {
			p.complete = false
			for ; day <= shared.End; day = day.add(1) {
				p.unreadable = append(p.unreadable, incompleteDay{day, unreadable,
					s.lang.pick("時間切れのため、まだ読んでいません", "not read, because the call's time was nearly up")})
			}
			return nil
		}
		for ahead = max(ahead, day); ahead <= shared.End && s.start(ctx, path+string(ahead), s.query()); {
			ahead = ahead.add(1)
		}
		response, err := s.get(ctx, path+string(day), s.query())
		var answer *vendorError
		switch {
		case errors.As(err, &answer) && answer.isMissing():
			p.unreadable = append(p.unreadable, incompleteDay{day, unreadable, cmp.Or(answer.said, answer.text)})
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
