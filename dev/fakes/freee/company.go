package freee

import (
	"time"
)

// Company is one company (事業所) of the connected user.
type Company struct {
	ID   int
	Name string
	// Role is the connected user's: company_admin, self_only, attendance_manager and so on.
	Role string
	// Self is the connected user's employee id; 0 is none.
	Self int
	// ClosingDay is the last day of a pay period, 1 to 31; 31 is the end of the month. Zero means 31.
	ClosingDay int
	// NextMonth reports whether a period is paid in the month after it closes.
	NextMonth bool
	Employees []*Employee
}

// Employee is one person. The fake makes up what freee sends along unasked: every such text contains Canary, every
// number is CanaryNumber and every date CanaryDate.
type Employee struct {
	ID                  int
	Num                 string
	LastName, FirstName string
	Hired               string // YYYY-MM-DD
	Retired             string // the last day; empty for none
	EmploymentType      *string
	Title               string
	OffPayroll          bool // 給与計算対象外
	Memberships         []Membership
	// Days has the notable days, by date. All others are ordinary: weekdays without record, Saturdays and
	// Sundays off.
	Days map[string]Day
}

// What must never leave a plugin.
const (
	Canary       = "カナリア-canary"
	CanaryNumber = 98765432
	CanaryDate   = "1912-06-23"
)

// Membership is a person's place in a group. Duty is main_duty, sub_duty or unspecified (the zero value).
type Membership struct{ Group, Position, Parent, Duty string }

// Day is the record of one day.
type Day struct {
	Work, Breaks []Span
	// Pattern is normal_day, prescribed_holiday or legal_holiday. Empty takes that of the day of the week.
	Pattern string
	// Schedule is one of the schema's schedule_pattern.
	Schedule   string
	Absent     bool
	Paid       []PaidLeave
	Special    float64 // days of 特別休暇
	TwoSpecial bool    // two kinds of 特別休暇 on one day, which freee cannot give out
	Late       int     // minutes
	Early      int     // minutes
	// Manual reports whether the lengths were entered by hand (not_auto_calc_work_time).
	Manual bool
	// LegacyLeave gives paid leave in the fields that were in use until 2025.
	LegacyLeave bool
}

// Span is from HH:MM to HH:MM, with hours past 24 on the next day; an empty end was not recorded, or has not happened
// yet.
type Span struct{ In, Out string }

// PaidLeave is full, half, morning_off, afternoon_off or hourly.
type PaidLeave struct {
	Type string
	Mins int
	Days float64
}

func (c *Company) employee(id int) *Employee {
	for _, e := range c.Employees {
		if e.ID == id {
			return e
		}
	}
	return nil
}

const dateLayout = "2006-01-02"

var jst = time.FixedZone("JST", 9*60*60)

func parseDay(date string) time.Time {
	t, _ := time.ParseInLocation(dateLayout, date, jst)
	return t
}

// closing returns the last day of the period that closes in a month.
func (c *Company) closing(year int, month time.Month) time.Time {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, jst)
	if c.ClosingDay > 0 && c.ClosingDay < last.Day() {
		return time.Date(year, month, c.ClosingDay, 0, 0, 0, 0, jst)
	}
	return last
}

// payPeriod returns the first and last day of the period that is paid in a month.
func (c *Company) payPeriod(year int, month time.Month) (start, end time.Time) {
	if c.NextMonth {
		month--
	}
	first := time.Date(year, month, 1, 0, 0, 0, 0, jst)
	before := first.AddDate(0, -1, 0)
	return c.closing(before.Year(), before.Month()).AddDate(0, 0, 1), c.closing(first.Year(), first.Month())
}

// employedIn reports whether the person is employed on some day from start to end.
func (e *Employee) employedIn(start, end time.Time) bool {
	return !parseDay(e.Hired).After(end) && (e.Retired == "" || !parseDay(e.Retired).Before(start))
}
