package main

import "context"

// attendance is one employee's days of one month.
type attendance struct {
	Vendor       string       `json:"vendor"`
	CompanyID    string       `json:"company_id,omitempty"`
	EmployeeID   string       `json:"employee_id"`
	Month        string       `json:"month"`
	Period       period       `json:"period"`
	Records      []record     `json:"records"`
	TotalRecords int          `json:"total_records"`
	Unreadable   []unreadable `json:"unreadable"`
	Notes        []string     `json:"notes"`
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
}

// unreadable is a day that the vendor refuses to give.
type unreadable struct {
	Date   date   `json:"date"`
	Reason string `json:"reason"`
}

// Kinds of days.
const (
	weekday = "weekday"
	weekend = "weekend"
	holiday = "holiday"
)

// monthQuery are the arguments of list_attendance and calculate_overtime; the manifest says what they mean.
type monthQuery struct {
	CompanyID  string `json:"company_id,omitempty"`
	EmployeeID string `json:"employee_id"`
	Month      string `json:"month"`
}

// check selects the company and reads the month.
func (q monthQuery) check(s *session) (month, error) {
	if err := s.chooseCompany(q.CompanyID); err != nil {
		return month{}, err
	}
	return parseMonth(s.lang, q.Month)
}

func listAttendance(ctx context.Context, s *session, in monthQuery) (any, error) {
	lister, ok := s.vendor.(attendanceLister)
	if !ok {
		return nil, s.unsupported("list_attendance")
	}
	m, err := in.check(s)
	if err != nil {
		return nil, err
	}
	out, err := lister.attendance(ctx, in.EmployeeID, m)
	if err != nil {
		return nil, err
	}
	out.Vendor, out.EmployeeID, out.Month, out.TotalRecords = s.Vendor, in.EmployeeID, m.String(), len(out.Records)
	out.Records, out.Unreadable, out.Notes = orEmpty(out.Records), orEmpty(out.Unreadable), orEmpty(out.Notes)
	return out, nil
}

// orEmpty makes JSON write an empty list as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
