package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	freeefake "github.com/hako-run/hako/dev/fakes/freee"
)

// asked lists the pay months and days that were asked for, shortened.
func asked(fake *freeefake.Server) string {
	var list []string
	for _, r := range fake.Requests.All() {
		_, rest, found := strings.Cut(r.Path, "/employees/102/")
		if !found {
			list = append(list, "who")
			continue
		}
		rest = strings.NewReplacer("work_record_summaries/", "", "work_records/", "day ").Replace(rest)
		if r.Query.Get("work_records") == "" && !strings.HasPrefix(rest, "day") {
			rest += " without days"
		}
		list = append(list, fmt.Sprintf("%s %d", rest, r.Status))
	}
	return strings.Join(list, ", ")
}

// TestPayMonths holds which pay months are asked for until the calendar month is covered, and what of it is.
func TestPayMonths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		closing        int
		nextMonth      bool
		hired, retired string
		asked, period  string
		records        int
		basis          string
	}{
		{"end of the month, paid in it", 31, false, "", "", "2026/5 200", "2026-05-01 2026-05-31", 31, vendorSummary},
		{"end of the month, paid in the next", 31, true, "", "", "2026/5 200, 2026/6 200", "2026-05-01 2026-05-31", 31,
			vendorSummary},
		{"the 20th, paid in the month", 20, false, "", "", "2026/5 200, 2026/6 200", "2026-05-01 2026-05-31", 31,
			dailyRecords},
		{"the 20th, paid in the next", 20, true, "", "", "2026/5 200, 2026/6 200, 2026/7 200", "2026-05-01 2026-05-31",
			31, dailyRecords},
		{"the 1st, paid in the next", 1, true, "", "", "2026/5 200, 2026/6 200, 2026/7 200", "2026-05-01 2026-05-31",
			31, dailyRecords},
		{"joined in the month", 31, true, "2026-05-11", "", "2026/5 404, who, 2026/6 200", "2026-05-01 2026-05-31", 31,
			vendorSummary},
		{"joined after the 20th", 20, false, "2026-05-25", "", "2026/5 404, who, 2026/6 200", "2026-05-21 2026-05-31",
			11, dailyRecords},
		{"left before the 20th", 20, false, "", "2026-05-10", "2026/5 200, 2026/6 404, who", "2026-05-01 2026-05-20",
			20, dailyRecords},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeFreee(t, func(o *freeefake.Options) {
				company := o.Companies[0]
				company.ClosingDay, company.NextMonth = test.closing, test.nextMonth
				if test.hired != "" {
					company.Employees[1].Hired = test.hired
				}
				company.Employees[1].Retired = test.retired
			})
			query := monthQuery{EmployeeID: "102", Month: "2026-05"}
			days, err := call[attendanceAnswer](t, listAttendance, query, config, english)
			if err != nil {
				t.Fatal(err)
			}
			if got := asked(fake); got != test.asked {
				t.Errorf("asked for %s, want %s", got, test.asked)
			}
			if got := fmt.Sprint(days.Period.Start, " ", days.Period.End); got != test.period ||
				days.TotalRecords != test.records {
				t.Errorf("%d records in %s, want %d in %s", days.TotalRecords, got, test.records, test.period)
			}
			if whole := test.records == 31; whole == (len(days.Notes) > 0) {
				t.Errorf("%d days, and notes %q", days.TotalRecords, days.Notes)
			}
			sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
			if err != nil {
				t.Fatal(err)
			}
			if sums.Basis != test.basis || sums.Period != days.Period {
				t.Errorf("overtime by %s for %v, want %s", sums.Basis, sums.Period, test.basis)
			}
			if test.hired == "" && test.retired == "" && (sums.TotalWork != 7590 || sums.TotalOvertime != 900 ||
				*sums.Breakdown.LateNight != 270 || *sums.Breakdown.Normal != 630) {
				t.Errorf("totals depend on the closing day: %s", encode(t, sums.totals))
			}
		})
	}
}

// TestSumsOfDays holds freee's own rule on the figures: all work is agreed hours, overtime within and beyond the legal
// hours, and work on legal holidays.
func TestSumsOfDays(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	query := monthQuery{EmployeeID: "102", Month: "2026-05"}
	days, err := call[attendanceAnswer](t, listAttendance, query, config, english)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	again := sumDays(days.Period, days.Records)
	if again.TotalWork != sums.TotalWork || again.TotalOvertime != sums.TotalOvertime ||
		again.Breakdown.LegalHoliday != sums.Breakdown.LegalHoliday {
		t.Errorf("the days sum up to %s, freee says %s", encode(t, again), encode(t, sums.totals))
	}
}

// TestTwoSpecialLeaves checks that one day that freee cannot give out costs that day, and not the month.
func TestTwoSpecialLeaves(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[0].NextMonth = false
		o.Companies[0].Employees[1].Days["2026-05-21"] = freeefake.Day{TwoSpecial: true}
	})
	query := monthQuery{EmployeeID: "102", Month: "2026-05"}
	days, err := call[attendanceAnswer](t, listAttendance, query, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if got := asked(fake); !strings.HasPrefix(got, "2026/5 400, 2026/5 without days 200, day ") ||
		!strings.Contains(got, "day 2026-05-21 400, ") || len(fake.Requests.All()) != 33 {
		t.Errorf("asked for %s", got)
	}
	if days.TotalRecords != 30 || len(days.IncompleteDays) != 1 ||
		days.IncompleteDays[0] != (incompleteDay{"2026-05-21", unreadable, "特別休暇が2つ登録されています。Webで確認してください。"}) {
		t.Errorf("%d records, unreadable %v", days.TotalRecords, days.IncompleteDays)
	}
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if sums.Basis != vendorSummary || sums.TotalOvertime != 900 || *sums.Breakdown.LateNight != 270 ||
		len(sums.IncompleteDays) != 1 {
		t.Errorf("got %s", encode(t, sums))
	}
}

// TestTwoSpecialLeavesInASplitMonth checks that the night's overtime of a period is not told from a part of its days.
func TestTwoSpecialLeavesInASplitMonth(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[1].Employees[0].Days["2026-05-11"] = freeefake.Day{TwoSpecial: true}
	})
	sums, err := call[overtimeAnswer](t, calculateOvertime,
		overtimeQuery{monthQuery: monthQuery{CompanyID: "67890", EmployeeID: "201", Month: "2026-05"}}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	first, second := sums.PayPeriods[0].Breakdown, sums.PayPeriods[1].Breakdown
	if first.LateNight != nil || first.Normal != nil || second.LateNight == nil || *sums.Breakdown.LateNight != 270 ||
		len(sums.IncompleteDays) != 1 {
		t.Errorf("got %s", encode(t, sums))
	}
}

// TestFailuresOnTheWay checks that a failure while days are read one by one, or months after another, is not taken for a
// missing day.
func TestFailuresOnTheWay(t *testing.T) {
	t.Parallel()
	query := monthQuery{EmployeeID: "102", Month: "2026-05"}
	for name, test := range map[string]struct {
		path   string
		status int
		want   string
	}{
		"a day":            {"/hr/api/v1/employees/102/work_records/2026-05-15", 429, "HTTP 429"},
		"the second month": {"/hr/api/v1/employees/102/work_record_summaries/2026/6", 503, "HTTP 503"},
		"the first month": {"/hr/api/v1/employees/102/work_record_summaries/2026/5", 401,
			"renew the credential freee"},
		"every month":        {"/hr/api/v1/employees/102/work_record_summaries/**", 404, "HTTP 404"},
		"every month is bad": {"/hr/api/v1/employees/102/work_record_summaries/**", 400, "HTTP 400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeFreee(t, func(o *freeefake.Options) {
				o.Companies[0].Employees[1].Days["2026-05-21"] = freeefake.Day{TwoSpecial: true}
			})
			fake.Faults.Add(fault.Fault{Path: test.path, Status: test.status, Body: `{"message":"x"}`})
			_, err := call[attendanceAnswer](t, listAttendance, query, config, english)
			wantError(t, err, test.want)
			_, err = call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
			wantError(t, err, test.want)
		})
	}
}

func TestBadMonthQueries(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, nil)
	for _, test := range []struct {
		name  string
		query monthQuery
		want  string
	}{
		{"employee id", monthQuery{EmployeeID: "abc", Month: "2026-05"}, `employee_id is "abc"`},
		{"path in the id", monthQuery{EmployeeID: "../users/me", Month: "2026-05"}, "integers"},
		{"negative id", monthQuery{EmployeeID: "-1", Month: "2026-05"}, "integers"},
		{"full-width id", monthQuery{EmployeeID: "１０２", Month: "2026-05"}, "integers"},
		{"long id", monthQuery{EmployeeID: strings.Repeat("9", 19), Month: "2026-05"}, "integers"},
		{"no month", monthQuery{EmployeeID: "102"}, "must be YYYY-MM"},
		{"month 13", monthQuery{EmployeeID: "102", Month: "2026-13"}, "must be YYYY-MM"},
		{"month 0", monthQuery{EmployeeID: "102", Month: "2026-00"}, "must be YYYY-MM"},
		{"one digit", monthQuery{EmployeeID: "102", Month: "2026-5"}, "must be YYYY-MM"},
		{"slash", monthQuery{EmployeeID: "102", Month: "2026/05"}, "must be YYYY-MM"},
		{"a date", monthQuery{EmployeeID: "102", Month: "2026-05-01"}, "must be YYYY-MM"},
		{"too early", monthQuery{EmployeeID: "102", Month: "1999-12"}, "2000 to 2100"},
		{"too late", monthQuery{EmployeeID: "102", Month: "2101-01"}, "2000 to 2100"},
		{"company", monthQuery{CompanyID: "1; DROP", EmployeeID: "102", Month: "2026-05"}, "integers"},
	} {
		_, err := call[attendanceAnswer](t, listAttendance, test.query, config, english)
		wantError(t, err, test.want)
		_, err = call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: test.query}, config, english)
		wantError(t, err, test.want)
	}
	if n := len(fake.Requests.All()); n > 0 {
		t.Errorf("%d requests for bad arguments", n)
	}
	_, err := call[attendanceAnswer](t, listAttendance, monthQuery{EmployeeID: "999999", Month: "2026-05"}, config,
		english)
	wantError(t, err, "employee 999999, month 2026-05", "HTTP 404", "list_employees finds ids")
	_, err = call[attendanceAnswer](t, listAttendance, monthQuery{EmployeeID: "102", Month: "2010-05"}, config, english)
	wantError(t, err, "HTTP 404")
}

// TestMissingMonthFields checks that a figure of the month that is missing is an error with its name, and never 0.
func TestMissingMonthFields(t *testing.T) {
	t.Parallel()
	target := "/api/v1/employees/102/work_record_summaries/2026/6?company_id=12345&work_records=true"
	for _, name := range []string{"start_date", "end_date", "work_days", "work_records", "total_work_mins", "total_overtime_except_normal_work_mins",
		"total_overtime_within_normal_work_mins", "total_excess_statutory_work_mins", "total_holiday_work_mins",
		"total_prescribed_holiday_work_mins", "total_latenight_work_mins"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeFreee(t, nil)
			change(t, config, &fake.Faults, target, func(answer any) { delete(member(answer), name) })
			_, err := call[overtimeAnswer](t, calculateOvertime,
				overtimeQuery{monthQuery: monthQuery{EmployeeID: "102", Month: "2026-05"}}, config, english)
			wantError(t, err, name)
			if strings.HasPrefix(name, "total_") {
				wantError(t, err, "unknown overtime field")
			}
		})
	}
}
