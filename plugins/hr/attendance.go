package main

import (
	"cmp"
	"context"
	"slices"
)

// attendance is one person's days of one month. Many days and most fields of a day are empty: condense omits them from
// the result.
type attendance struct {
	EmployeeID string `json:"employee_id"`
	*identity
	Period period `json:"period"`
	worth
	TotalRecords int `json:"total_records"`
	// NotKnown are the fields that the vendor does not report for any of the days.
	NotKnown []string `json:"not_known"`
	// WithoutEntries are the days that have no record below, by their type.
	WithoutEntries map[string][]date `json:"days_without_entries"`
	Records        []record          `json:"records"`
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

// record is one day. Until condense, a nil field is one that the vendor does not report; afterwards it is zero, unless
// NotKnown names it.
type record struct {
	Date              date     `json:"date"`
	DayType           string   `json:"day_type"`
	DayTypeRaw        *string  `json:"day_type_raw,omitempty"`
	ScheduleRaw       *string  `json:"schedule_raw,omitempty"`
	ClockIn           *string  `json:"clock_in,omitempty"`
	ClockOut          *string  `json:"clock_out,omitempty"`
	IsOpen            bool     `json:"is_open,omitempty"`
	BreakMinutes      *int     `json:"break_minutes,omitempty"`
	WorkMinutes       *int     `json:"work_minutes,omitempty"`
	OvertimeMinutes   int      `json:"overtime_minutes,omitempty"`
	WithinStatutory   int      `json:"within_statutory_overtime_minutes,omitempty"`
	LateNightOvertime int      `json:"late_night_overtime_minutes,omitempty"`
	LegalHolidayWork  *int     `json:"legal_holiday_work_minutes,omitempty"`
	PrescribedHoliday *int     `json:"prescribed_holiday_work_minutes,omitempty"`
	LateMinutes       *int     `json:"late_minutes,omitempty"`
	EarlyLeaveMinutes *int     `json:"early_leave_minutes,omitempty"`
	IsAbsent          *bool    `json:"is_absent,omitempty"`
	IsPaidLeave       bool     `json:"is_paid_leave,omitempty"`
	PaidLeaveDays     *float64 `json:"paid_leave_days,omitempty"`
	PaidLeaveMinutes  *int     `json:"paid_leave_minutes,omitempty"`
	SpecialLeaveDays  *float64 `json:"special_leave_days,omitempty"`
	NotKnown          []string `json:"not_known,omitempty"`
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
		a.condense()
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
