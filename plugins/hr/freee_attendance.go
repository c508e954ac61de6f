package main

import (
	"context"
)

// attendance returns the days of a calendar month, out of the one or two pay months that have them.
func (f *freee) attendance(ctx context.Context, employee string, m month) (*attendance, error) {
	months, err := f.worked(ctx, employee, m)
	if err != nil {
		return nil, err
	}
	out := &attendance{CompanyID: f.company}
	out.Period, out.Notes = f.covered(months, m)
	for _, p := range months {
		out.Records = append(out.Records, daysIn(p.days, m.days())...)
		out.Unreadable = append(out.Unreadable, p.unreadable...)
	}
	return out, nil
}

// worked resolves the company and reads the pay months of an employee's month.
func (f *freee) worked(ctx context.Context, employee string, m month) ([]payMonth, error) {
	if !digits(employee) {
		return nil, f.lang.errorf("employee_id の値 %q は数字ではありません。freeeの従業員IDは整数です。list_employees で調べてください。",
			"employee_id is %q, and freee's employee ids are integers: list_employees finds them", clip(employee))
	}
	if err := f.resolveCompany(ctx); err != nil {
		return nil, err
	}
	months, err := f.payMonths(ctx, employee, m)
	if err != nil {
		return nil, f.withRole(ctx, err)
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
