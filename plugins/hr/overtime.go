package main

import (
	"cmp"
	"context"
	"slices"
)

// overtime is one employee's overtime of one month.
type overtime struct {
	Vendor     string `json:"vendor"`
	CompanyID  string `json:"company_id,omitempty"`
	EmployeeID string `json:"employee_id"`
	Month      string `json:"month"`
	Basis      string `json:"basis"`
	totals
	PayPeriods []totals `json:"pay_periods"`
	// VendorValues are the figures of the vendor's that the totals are made of, under its names.
	VendorValues map[string]float64 `json:"vendor_values"`
	Unreadable   []unreadable       `json:"unreadable"`
	Notes        []string           `json:"notes"`
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

// breakdown says what kinds of overtime and of other extra work there are. Nil is what the vendor does not say.
type breakdown struct {
	Normal            *int `json:"normal_overtime_minutes"`
	LateNight         *int `json:"late_night_overtime_minutes"`
	LegalHoliday      int  `json:"holiday_work_minutes"`
	PrescribedHoliday *int `json:"prescribed_holiday_work_minutes"`
	LateNightWork     *int `json:"late_night_work_minutes"`
}

// setLateNight divides the overtime into that of the night and the rest. More of the night than there is in all fits no division.
func (t *totals) setLateNight(minutes int) {
	t.Breakdown.LateNight = &minutes
	if rest := t.TotalOvertime - minutes; rest >= 0 {
		t.Breakdown.Normal = &rest
	}
}

func calculateOvertime(ctx context.Context, s *session, in monthQuery) (any, error) {
	calculator, ok := s.vendor.(overtimeCalculator)
	if !ok {
		return nil, s.unsupported("calculate_overtime")
	}
	m, err := in.check(s)
	if err != nil {
		return nil, err
	}
	out, err := calculator.overtime(ctx, in.EmployeeID, m)
	if err != nil {
		return nil, err
	}
	out.Vendor, out.EmployeeID, out.Month = s.Vendor, in.EmployeeID, m.String()
	out.PayPeriods, out.Unreadable, out.Notes = orEmpty(out.PayPeriods), orEmpty(out.Unreadable), orEmpty(out.Notes)
	if out.VendorValues == nil {
		out.VendorValues = map[string]float64{}
	}
	return out, nil
}

// daysIn returns the records of the days in a period, each day once, in order.
func daysIn(records []record, in period) []record {
	days := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return !in.contains(r.Date) })
	slices.SortStableFunc(days, func(a, b record) int { return cmp.Compare(a.Date, b.Date) })
	return slices.CompactFunc(days, func(a, b record) bool { return a.Date == b.Date })
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
