package main

import (
	"context"
	"errors"
	"time"
)

// attendance returns the days of a calendar month, out of the one or two pay months that have them.
func (f *freee) attendance(ctx context.Context, ids []string, m month) ([]result[attendance], error) {
	return eachMonth(ctx, f, ids, m, func(months []payMonth) (attendance, error) {
		var a attendance
		a.Period, a.Notes = f.covered(months, m)
		for _, p := range months {
			a.Records = append(a.Records, daysIn(p.days, m.days())...)
			a.IncompleteDays = append(a.IncompleteDays, p.unreadable...)
		}
		return a, nil
	})
}

// eachMonth reads the pay months of people and makes of each person's what make does. freee has no list of several
// people's months, so those of the next people are under way while one is read.
func eachMonth[T any](ctx context.Context, f *freee, ids []string, m month,
	make func([]payMonth) (T, error)) ([]result[T], error) {
	results := []result[T]{}
	defer f.cancel("")
	for n, id := range ids {
		if n > 0 && timeIsShort(ctx) {
			results = append(results,
				result[T]{err: &dataError{f.lang.errorf("時間切れのため、まだ読んでいません。もう一度呼び出すか、部署ごとに、または少ない人数で取得してください。",
					"not read, because the call's time was nearly up: call again, or ask by department or for fewer people")}})
			continue
		}
		f.startMonths(ctx, ids[n:], m)
		var r result[T]
		months, err := f.worked(ctx, id, m)
		if err == nil {
			r.value, err = make(months)
		}
		f.cancel(monthsOf(id))
		if r.err = err; err != nil && !isPersonal(err) {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// startMonths starts the requests for the months of people that payMonths will ask for first, as long as there is room
// for more.
func (f *freee) startMonths(ctx context.Context, ids []string, m month) {
	for _, id := range ids {
		for _, offset := range f.offsets {
			pay := m.add(offset)
			if p := f.people[id]; p != nil && !p.paidFor(pay, m.days()) || !digits(id) {
				continue
			}
			if !f.start(ctx, monthPath(id, pay), f.withDays()) {
				return
			}
		}
	}
}

// enough is the time that is left for one more person and the answer.
const enough = 3 * time.Second

// timeIsShort reports whether the call's time is nearly up: what was read by then is worth more than an error.
func timeIsShort(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < enough
}

// isPersonal reports an error that says nothing about other people: the vendor has no such month, or the month has a
// fault.
func isPersonal(err error) bool {
	var refused *vendorError
	if errors.As(err, &refused) {
		return refused.isMissing()
	}
	var fault *dataError
	return errors.As(err, &fault)
}

// worked resolves the company and reads the pay months of an employee's month.
func (f *freee) worked(ctx context.Context, employee string, m month) ([]payMonth, error) {
	if !digits(employee) {
		return nil, &dataError{f.lang.errorf("employee_id の値 %q は数字ではありません。freeeの従業員IDは整数です。list_employees で調べてください。",
			"employee_id is %q, and freee's employee ids are integers: list_employees finds them", clip(employee))}
	}
	if err := f.resolveCompany(ctx); err != nil {
		return nil, err
	}
	months, err := f.payMonths(ctx, employee, m)
	if err != nil {
		return nil, f.lang.errorf("従業員 %s の%s分: %w", "employee %s, month %s: %w", employee, m, f.withRole(ctx, err))
	}
	return months, nil
}

// covered is the part of the month that pay months cover, with a note where that is not all of it.
func (f *freee) covered(months []payMonth, m month) (period, []string) {
	all := period{months[0].Start, months[len(months)-1].End}
	shared, _ := all.overlap(m.days())
	if shared == m.days() {
		return shared, nil
	}
	return shared, []string{f.lang.sprintf("freeeには、%sから%sまでの分だけがあります（入社前、退職後、または未集計の期間は含まれません）。",
		"freee has only the days from %s to %s: the others lie before joining, after leaving, or in a period that is not open yet", shared.Start, shared.End)}
}
