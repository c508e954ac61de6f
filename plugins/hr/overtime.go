package main

import (
	"cmp"
	"context"
	"slices"
)

// overtime is one person's overtime of one month.
type overtime struct {
	EmployeeID string `json:"employee_id"`
	*identity
	Basis string `json:"basis"`
	worth
	totals
	// PayPeriods and VendorValues, the vendor's own figures under its names, are in the answer about one employee_id
	// alone.
	PayPeriods   []totals           `json:"pay_periods,omitempty"`
	VendorValues map[string]float64 `json:"vendor_values,omitempty"`

	days []record // of the month
}

// overtimeAnswer is the structured content of calculate_overtime for one employee_id.
type overtimeAnswer struct {
	header
	*overtime
}

// overtimePage is the result for several people.
type overtimePage struct {
	page
	// Undecided are people who are not above the limit that was asked for, but whose days are incomplete.
	Undecided []undecided `json:"undecided,omitempty"`
	Employees []overtime  `json:"employees"`
}

// undecided is a person of whom it is not known whether a limit is passed.
type undecided struct {
	EmployeeID     string `json:"employee_id"`
	Name           string `json:"name,omitempty"`
	TotalOvertime  int    `json:"total_overtime_minutes"`
	IncompleteDays int    `json:"incomplete_days"`
}

// What the totals of an answer are made of.
const (
	vendorSummary = "vendor_summary" // the vendor's own figures for the month
	dailyRecords  = "daily_records"  // sums of days, where the vendor's periods are not calendar months
)

// totals are the figures of one period, in minutes unless they say days.
type totals struct {
	Period          period    `json:"period"`
	TotalWork       int       `json:"total_work_minutes"`
	TotalOvertime   int       `json:"total_overtime_minutes"`
	WithinStatutory int       `json:"within_statutory_overtime_minutes"`
	WorkingDays     float64   `json:"working_days"`
	AbsenceDays     *float64  `json:"absence_days"`
	PaidLeaveDays   *float64  `json:"paid_leave_days"`
	Breakdown       breakdown `json:"breakdown"`
}

// breakdown has the minutes by kind of overtime and other extra work. Nil means that the vendor does not report the
// kind.
type breakdown struct {
	Normal            *int `json:"normal_overtime_minutes"`
	LateNight         *int `json:"late_night_overtime_minutes"`
	LegalHoliday      int  `json:"holiday_work_minutes"`
	PrescribedHoliday *int `json:"prescribed_holiday_work_minutes"`
	LateNightWork     *int `json:"late_night_work_minutes"`
}

// setLateNight divides the overtime into that of the night and the rest. More of the night than there is in all fits no
// division.
func (t *totals) setLateNight(minutes int) {
	t.Breakdown.LateNight = &minutes
	if rest := t.TotalOvertime - minutes; rest >= 0 {
		t.Breakdown.Normal = &rest
	}
}

func calculateOvertime(ctx context.Context, s *session, in overtimeQuery) (any, error) {
	calculator, ok := s.vendor.(overtimeCalculator)
	if !ok {
		return nil, s.unsupported("calculate_overtime")
	}
	who, m, err := in.people(ctx, s)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(in.Limit, defaultLimit)
	shown, next := pageOf(who.people, in.Offset, limit)
	if in.OverMinutes != nil {
		shown = who.people // all have to be read to know who is above
	}
	results, err := calculator.overtime(ctx, idsOf(shown), m)
	if err != nil {
		return nil, err
	}
	for i := range results {
		o := &results[i].value
		o.EmployeeID, o.identity = shown[i].id, shown[i].identity
		s.judge(&o.worth, o.days, m, who.one)
	}
	if who.one {
		if results[0].err != nil {
			return nil, results[0].err
		}
		return &overtimeAnswer{s.header(m), &results[0].value}, nil
	}
	out := &overtimePage{page: s.page(m, who, next)}
	for i, r := range results {
		if !out.add(shown[i], r.err) {
			continue
		}
		o := r.value
		o.PayPeriods, o.VendorValues = nil, nil
		out.IsFinal = out.IsFinal && o.IsFinal
		out.Employees = append(out.Employees, o)
	}
	if in.OverMinutes != nil {
		out.above(*in.OverMinutes)
		out.Total = len(out.Employees)
		out.Employees, out.NextOffset = pageOf(out.Employees, in.Offset, limit)
	}
	out.Employees = orEmpty(out.Employees)
	return out, nil
}

// above leaves those with more overtime than the limit, the most first. Of the others, those with incomplete days may
// have more.
func (p *overtimePage) above(limit int) {
	p.Undecided = []undecided{}
	p.Employees = slices.DeleteFunc(p.Employees, func(o overtime) bool {
		if o.TotalOvertime > limit {
			return false
		}
		if len(o.IncompleteDays) > 0 {
			u := undecided{EmployeeID: o.EmployeeID, TotalOvertime: o.TotalOvertime,
				IncompleteDays: len(o.IncompleteDays)}
			if o.identity != nil {
				u.Name = o.Name
			}
			p.Undecided = append(p.Undecided, u)
		}
		return true
	})
	slices.SortStableFunc(p.Employees, compareOvertime)
}

// compareOvertime orders people by overtime, the most first.
func compareOvertime(a, b overtime) int {
	return cmp.Or(cmp.Compare(b.TotalOvertime, a.TotalOvertime), cmp.Compare(len(a.EmployeeID), len(b.EmployeeID)),
		cmp.Compare(a.EmployeeID, b.EmployeeID))
}

// sumDays adds up days. What the vendor does not say of a day counts nothing.
func sumDays(in period, days []record) totals {
	var prescribed, night, lateNight int
	var absences, paid float64
	t := totals{Period: in}
	for _, r := range days {
		t.TotalOvertime += r.OvertimeMinutes
		t.WithinStatutory += r.WithinStatutory
		t.Breakdown.LegalHoliday += or0(r.LegalHolidayWork)
		prescribed += or0(r.PrescribedHoliday)
		night += r.lateNightWork
		lateNight += r.LateNightOvertime
		paid += or0(r.PaidLeaveDays)
		if work := or0(r.WorkMinutes); work > 0 {
			t.TotalWork += work
			t.WorkingDays++
		}
		if r.IsAbsent != nil && *r.IsAbsent {
			absences++
		}
	}
	t.AbsenceDays, t.PaidLeaveDays = &absences, &paid
	t.Breakdown.PrescribedHoliday, t.Breakdown.LateNightWork = &prescribed, &night
	t.setLateNight(lateNight)
	return t
}

func or0[N int | float64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}
