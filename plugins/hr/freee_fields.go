package main

import "strings"

// freeeMinutes is a length of time in freee's answers, by the names that it has or had, the newest first.
//
// freee has announced other names for overtime about October 2026, and the end of those below about April 2027
// (developer.freee.co.jp/hr/hr-improvement/8617). They are added here, and nowhere else, once they are published.
type freeeMinutes []string

// Of a day (ApiV1EmployeesWorkRecordSerializer).
var (
	// dayOvertime is 0 on a day whose lengths were entered by hand; then dayOvertimeByHand counts.
	dayOvertime       = freeeMinutes{"total_overtime_work_mins"}
	dayOvertimeByHand = freeeMinutes{"total_overtime_except_normal_work_mins"}
	// dayWithinLegal is 法定内残業, though its name says the opposite.
	dayWithinLegal   = freeeMinutes{"total_excess_statutory_work_mins"}
	dayNightOvertime = freeeMinutes{"total_latenight_overtime_except_normal_work_min",
		"total_latenight_overtime_except_normal_work_mins"}
	dayNight             = freeeMinutes{"total_latenight_work_mins"}
	dayLegalHoliday      = freeeMinutes{"total_holiday_work_mins"}
	dayPrescribedHoliday = freeeMinutes{"total_prescribed_holiday_work_mins"}
)

// Of a month (ApiV1EmployeesWorkRecordSummarySerializer).
var (
	monthWork              = freeeMinutes{"total_work_mins"}
	monthOvertime          = freeeMinutes{"total_overtime_except_normal_work_mins"}
	monthOvertimeInNormal  = freeeMinutes{"total_overtime_within_normal_work_mins"}
	monthWithinLegal       = freeeMinutes{"total_excess_statutory_work_mins"}
	monthNight             = freeeMinutes{"total_latenight_work_mins"}
	monthLegalHoliday      = freeeMinutes{"total_holiday_work_mins"}
	monthPrescribedHoliday = freeeMinutes{"total_prescribed_holiday_work_mins"}
)

// of reads the length. A missing one is a fault and never 0: freee renames these fields.
func (m freeeMinutes) of(o object) int {
	if !o.has(m...) {
		o.fail(o.lang.errorf("残業・労働時間の項目が見つかりません（unknown overtime field: %s）。freeeは2026年から2027年にかけて項目名を変更するため、0とみなさず中止しました。プラグインを更新してください。",
			"unknown overtime field: freee's answer has no %s. freee renames these fields in 2026 and 2027, so a missing one is not taken for 0: update the plugin.",
			o.place(strings.Join(m, "|"))))
		return 0
	}
	return o.minutes(m...)
}
