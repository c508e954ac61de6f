package main

import (
	"cmp"
	"context"
	"slices"
)

// attendance is one person's days of one month.
type attendance struct {
	EmployeeID string `json:"employee_id"`
	*identity
	Period period `json:"period"`
	worth
	TotalRecords int      `json:"total_records"`
	Records      []record `json:"records"`
}

// attendanceAnswer is the structured content of list_attendance for one employee_id.
type attendanceAnswer struct {
	header
	*attendance
}

// attendancePage is the result for several people.
type attendancePage struct {
	page
	Employees []attendance `json:"employees"`
}

// record is one day.
type record struct {
	Date              date     `json:"date"`
	DayType           string   `json:"day_type"`
	DayTypeRaw        *string  `json:"day_type_raw"`
	ScheduleRaw       *string  `json:"schedule_raw"`
	ClockIn           *string  `json:"clock_in"`
	ClockOut          *string  `json:"clock_out"`
	IsOpen            bool     `json:"is_open"`
	BreakMinutes      *int     `json:"break_minutes"`
	WorkMinutes       *int     `json:"work_minutes"`
	OvertimeMinutes   int      `json:"overtime_minutes"`
	WithinStatutory   int      `json:"within_statutory_overtime_minutes"`
	LateNightOvertime int      `json:"late_night_overtime_minutes"`
	LegalHolidayWork  *int     `json:"legal_holiday_work_minutes"`
	PrescribedHoliday *int     `json:"prescribed_holiday_work_minutes"`
	LateMinutes       *int     `json:"late_minutes"`
	EarlyLeaveMinutes *int     `json:"early_leave_minutes"`
	IsAbsent          *bool    `json:"is_absent"`
	IsPaidLeave       bool     `json:"is_paid_leave"`
	PaidLeaveDays     *float64 `json:"paid_leave_days"`
	PaidLeaveMinutes  *int     `json:"paid_leave_minutes"`
	SpecialLeaveDays  *float64 `json:"special_leave_days"`
	Notes             []string `json:"notes,omitempty"`

	lateNightWork int // all work between 22:00 and 05:00, for sums
	faults        []dayFault
}

// Kinds of days.
const (
	weekday = "weekday"
	weekend = "weekend"
	holiday = "holiday"
)

func listAttendance(ctx context.Context, s *session, in monthQuery) (any, error) {
	lister, ok := s.vendor.(attendanceLister)
	if !ok {
		return nil, s.unsupported("list_attendance")
	}
	who, m, err := in.people(ctx, s)
	if err != nil {
		return nil, err
	}
	shown, next := pageOf(who.people, in.Offset, cmp.Or(in.Limit, defaultAttendanceLimit))
	results, err := lister.attendance(ctx, idsOf(shown), m)
	if err != nil {
		return nil, err
	}
	for i := range results {
		a := &results[i].value
		a.EmployeeID, a.identity, a.TotalRecords = shown[i].id, shown[i].identity, len(a.Records)
		s.judge(&a.worth, a.Records, m, who.one)
	}
	if who.one {
		if results[0].err != nil {
			return nil, results[0].err
		}
		return &attendanceAnswer{s.header(m), &results[0].value}, nil
	}
	out := &attendancePage{page: s.page(m, who, next)}
	for i, r := range results {
		if out.add(shown[i], r.err) {
			out.Employees = append(out.Employees, r.value)
			out.IsFinal = out.IsFinal && r.value.IsFinal
		}
	}
	out.Employees = orEmpty(out.Employees)
	return out, nil
}

// orEmpty makes JSON write an empty list as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// daysIn returns the records of the days in a period, each day once, in order.
func daysIn(records []record, in period) []record {
	days := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return !in.contains(r.Date) })
	slices.SortStableFunc(days, func(a, b record) int { return cmp.Compare(a.Date, b.Date) })
	return slices.CompactFunc(days, func(a, b record) bool { return a.Date == b.Date })
}
