package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	"github.com/hako-run/hako/pdk/pdktest"
)

var kotQuery = monthQuery{EmployeeID: kotPerson, Month: "2026-05"}

func TestKOTErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		status int
		body   string
		en, ja string
	}{
		{"bad token", 403, `{"errors":[{"message":"Bad Authentication.","code":100}]}`, "renew the credential kot",
			"認証情報 kot を更新"},
		{"address", 403, `{"errors":[{"message":"Forbidden","code":101}]}`, "allow-list", "IPアドレス"},
		{"too many", 429, kotfake.TooManyRequests, "Wait a few minutes", "数分待って"},
		{"too many, as 403", 403, `{"code":"303","message":"Too Many Requests"}`, "Wait a few minutes", "数分待って"},
		{"bad request", 400, `{"errors":[{"message":"start is invalid.","code":210}]}`,
			"It says \"start is invalid.\". Its code is 210.", "コード 210"},
		{"unauthorized", 401, ``, "renew the credential kot", "更新"},
		{"server error", 500, `oops`, "temporary failure", "一時的な障害"},
		{"forbidden by a proxy", 403, `<html>`, "allow-list", "IPアドレス"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeKOT(t, nil)
			fake.Faults.Add(fault.Fault{Status: test.status, Body: test.body})
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			wantError(t, err, test.en)
			_, err = call[attendanceAnswer](t, listAttendance, kotQuery, config, japanese)
			wantError(t, err, test.ja)
			_, err = call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
			wantError(t, err, test.en)
		})
	}
}

// TestKOTClosed checks that the hours in which the API is closed are said plainly.
func TestKOTClosed(t *testing.T) {
	t.Parallel()
	for clock, closed := range map[string]bool{"08:29": false, "08:30": true, "09:59": true, "10:00": false, "17:29": false, "17:30": true, "18:29": true, "18:30": false} {
		now, err := time.ParseInLocation("2006-01-02 15:04", "2026-11-20 "+clock, jst)
		if err != nil {
			t.Fatal(err)
		}
		_, config := fakeKOT(t, func(o *kotfake.Options) { o.Now = func() time.Time { return now } })
		_, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
		if !closed && err != nil {
			t.Errorf("%s: %v", clock, err)
		}
		if closed {
			wantError(t, err, "closed every day from 08:30 to 10:00 and from 17:30 to 18:30 Japan time",
				"Its code is 104")
		}
	}
}

func TestKOTSettings(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"正社員", "正社員=permanent", "=", "正社員=full_time=x"} {
		_, config := fakeKOT(t, nil)
		config.KOTEmploymentTypes = []string{entry}
		_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
		wantError(t, err, "kot_employment_types", "full_time")
	}
	_, config := fakeKOT(t, nil)
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{CompanyID: "1"}, config, english)
	wantError(t, err, "KING OF TIME takes no company id")
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{Status: onLeave}, config, english)
	wantError(t, err, "KING OF TIME does not expose the status on_leave")
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Department: "人事部", Status: active}, config,
		english)
	if err != nil || answer.TotalCount != 1 {
		t.Errorf("by group: %v, %v", answer, err)
	}
}

// TestKOTWindows checks that no request is for more than 62 days.
func TestKOTWindows(t *testing.T) {
	t.Parallel()
	fake, config := fakeKOT(t, nil)
	s := &session{settings: config, lang: english, now: noon}
	if err := s.chooseVendor(); err != nil {
		t.Fatal(err)
	}
	entries := 0
	err := s.vendor.(*kot).eachDay(t.Context(), "/daily-workings", map[string]int{kotPerson: 0},
		period{"2026-01-01", "2026-05-31"}, func(int, object) { entries++ })
	if err != nil || entries != 151 {
		t.Fatalf("%d entries, want one for each of 151 days: %v", entries, err)
	}
	var windows []string
	for _, r := range fake.Requests.All() {
		windows = append(windows, r.Query.Get("start")+".."+r.Query.Get("end"))
	}
	if got, want := strings.Join(windows, " "), "2026-01-01..2026-03-03 2026-03-04..2026-05-04 2026-05-05..2026-05-31"; got != want {
		t.Errorf("windows are %s, want %s", got, want)
	}
}

// TestKOTLargeCompany checks that a month that is too large for one answer is read in halves, and their halves.
func TestKOTLargeCompany(t *testing.T) {
	t.Parallel()
	fake, config := fakeKOT(t, nil)
	s := &session{settings: config, lang: english, now: noon}
	if err := s.chooseVendor(); err != nil {
		t.Fatal(err)
	}
	k := s.vendor.(*kot)
	k.maxBody = 12_000
	results, err := k.attendance(t.Context(), []string{kotPerson}, month{2026, time.May})
	if err != nil || len(results[0].value.Records) != 31 || *results[0].value.Records[13].ClockOut != "25:30" {
		t.Fatalf("%+v, %v", results, err)
	}
	if n := len(fake.Requests.All()); n < 6 {
		t.Errorf("%d requests: the answers are not large enough for this test", n)
	}
	k.maxBody = 100
	_, err = k.attendance(t.Context(), []string{kotPerson}, month{2026, time.May})
	wantError(t, err, "larger than 100 bytes")
}

func TestKOTDay(t *testing.T) {
	t.Parallel()
	working := "/daily-workings?start=2026-05-01&end=2026-05-31"
	clocks := "/daily-workings/timerecord?start=2026-05-01&end=2026-05-31"
	entry := func(answer any) map[string]any { return member(answer, 13, "dailyWorkings", 0) }
	for _, test := range []struct {
		name, target string
		edit         func(any)
		check        func(record) bool
		err          string
	}{
		{"unknown kind of day", working, func(a any) { entry(a)["workdayTypeName"] = "創立記念日" }, func(r record) bool {
			return r.DayType == unknown && *r.DayTypeRaw == "創立記念日" && r.LegalHolidayWork == nil &&
				r.PrescribedHoliday == nil && r.OvertimeMinutes == 450
		}, ""},
		{"legal holiday", working, func(a any) { entry(a)["workdayTypeName"] = "法定休日" }, func(r record) bool {
			return *r.LegalHolidayWork == 930 && r.OvertimeMinutes == 0 && r.LateNightOvertime == 0
		}, ""},
		{"other leave", working, func(a any) {
			member(entry(a), "holidaysObtained")["fulltimeHoliday"] = map[string]any{"code": 9, "name": "慶弔休暇"}
		}, func(r record) bool {
			return !r.IsPaidLeave && len(r.Notes) == 1 && strings.Contains(r.Notes[0], "慶弔休暇")
		}, ""},
		{"no leave at all", working, func(a any) { delete(entry(a), "holidaysObtained") },
			func(r record) bool { return !r.IsPaidLeave && *r.PaidLeaveDays == 0 }, ""},
		{"codes as numbers", clocks, func(a any) {
			for _, c := range entry(a)["timeRecord"].([]any) {
				c := c.(map[string]any)
				c["code"] = map[any]any{"1": 1, "2": 2}[c["code"]]
			}
		}, func(r record) bool { return *r.ClockIn == "09:00" && *r.ClockOut == "25:30" }, ""},
		{"two stretches", clocks, func(a any) {
			list := entry(a)["timeRecord"].([]any)
			entry(a)["timeRecord"] = append(list, map[string]any{"time": "2026-05-15T03:00:00+09:00", "code": "1"},
				map[string]any{"time": "2026-05-15T04:00:00+09:00", "code": "2"},
				map[string]any{"time": "2026-05-14T11:00:00+09:00", "code": "3"})
		}, func(r record) bool { return *r.ClockIn == "09:00" && *r.ClockOut == "28:00" && !r.IsOpen }, ""},
		{"no clock times", clocks, func(a any) { delete(entry(a), "timeRecord") }, func(r record) bool {
			return r.ClockIn == nil && r.ClockOut == nil && !r.IsOpen && *r.WorkMinutes == 930
		}, ""},
		{"missing overtime", working, func(a any) { delete(entry(a), "overtime") }, nil, "overtime"},
		{"missing night overtime", working, func(a any) { delete(entry(a), "lateNightOvertime") }, nil,
			"lateNightOvertime"},
		{"missing work", working, func(a any) { delete(entry(a), "totalWork") }, nil, "totalWork"},
		{"missing kind", working, func(a any) { delete(entry(a), "workdayTypeName") }, nil, "workdayTypeName"},
		{"missing date", working, func(a any) { delete(entry(a), "date") }, nil, "date"},
		{"work as text", working, func(a any) { entry(a)["totalWork"] = "930" }, nil,
			"totalWork is not a number of minutes"},
		{"time that is none", clocks, func(a any) {
			entry(a)["timeRecord"] = []any{map[string]any{"time": "9:00",
				"code": "1"}}
		}, nil, "time is not a time"},
		{"no list", working, func(a any) { member(a, 0)["dailyWorkings"] = "x" }, nil,
			"is not [{dailyWorkings: [...]}]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeKOT(t, nil)
			change(t, config, &fake.Faults, test.target, test.edit)
			results, err := vendorDays(t, config, kotPerson)
			if err == nil {
				err = results[0].err
			}
			if test.err != "" {
				wantError(t, err, "KING OF TIME", test.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r := results[0].value.Records[13]; !test.check(r) {
				t.Errorf("got %s", encode(t, r))
			}
		})
	}
}

// TestKOTMonth holds what counts as overtime, and that a figure that is missing is an error with its name.
func TestKOTMonth(t *testing.T) {
	t.Parallel()
	target := "/monthly-workings/2026-05"
	month := func(a any) map[string]any { return member(a, 0) }
	fake, config := fakeKOT(t, nil)
	change(t, config, &fake.Faults, target, func(a any) {
		for path, minutes := range map[string]int{"overtime": 1, "nightOvertime": 2} {
			month(a)[path] = minutes
		}
		month(a)["unassigned"] = 1000
		month(a)["generalHolidayWork"] = map[string]any{"normal": 10000, "overtime": 4, "nightOvertime": 8}
		month(a)["premiumWork"] = map[string]any{"overtime1": 16, "nightOvertime1": 32, "overtime2": 64,
			"nightOvertime2": 128}
		month(a)["legalHolidayWork"] = map[string]any{"normal": 20000, "overtime": 300, "night": 40}
	})
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if sums.TotalOvertime != 255 || *sums.Breakdown.LateNight != 170 || *sums.Breakdown.Normal != 85 ||
		sums.WithinStatutory != 1000 ||
		sums.Breakdown.LegalHoliday != 20340 || *sums.Breakdown.PrescribedHoliday != 10012 {
		t.Errorf("got %s", encode(t, sums))
	}
	for _, name := range []string{"startDate", "endDate", "overtime", "nightOvertime", "unassigned", "workingDayCount", "legalHolidayWork", "generalHolidayWork"} {
		fake, config := fakeKOT(t, nil)
		change(t, config, &fake.Faults, target, func(a any) { delete(month(a), name) })
		_, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
		wantError(t, err, "lacks the field", name)
	}
}

// TestKOTJoiners checks that the month of somebody who joined after it closed is found in the next.
func TestKOTJoiners(t *testing.T) {
	t.Parallel()
	_, config := fakeKOT(t, func(o *kotfake.Options) {
		o.ClosingDay, o.Employees = 20, kotfake.Demo()
		o.Employees[0].Hired = "2026-05-25"
	})
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
	if err != nil || sums.Period != (period{"2026-05-21", "2026-05-31"}) || sums.TotalWork != 5*480 {
		t.Errorf("got %s, %v", encode(t, sums), err)
	}
}

// TestKOTUncounted checks that work that no figure has is told.
func TestKOTUncounted(t *testing.T) {
	t.Parallel()
	fake, config := fakeKOT(t, func(o *kotfake.Options) { o.ClosingDay = 20 })
	change(t, config, &fake.Faults, "/monthly-workings/2026-05",
		func(a any) { member(a, 0, "holidayWork")["overtime"] = 5 })
	change(t, config, &fake.Faults, "/daily-workings?start=2026-04-21&end=2026-06-20", func(a any) {
		member(a, 23, "dailyWorkings", 0)["workdayTypeName"] = "創立記念日"
	})
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(sums.Notes, "\n"); !strings.Contains(notes, "holidayWork") ||
		!strings.Contains(notes, "創立記念日") {
		t.Errorf("notes are %s", notes)
	}
}

func TestKOTEmployeeFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(map[string]any)
		want string
	}{
		"no key":    {func(e map[string]any) { delete(e, "key") }, "lacks the field employees[0].key"},
		"empty key": {func(e map[string]any) { e["key"] = "" }, "lacks the field employees[0].key"},
		"no name":   {func(e map[string]any) { delete(e, "lastName") }, "lacks the field employees[0].lastName"},
		"empty name": {func(e map[string]any) { e["lastName"], e["firstName"] = "", " " },
			"lacks the field employees[0].lastName"},
		"bad date": {func(e map[string]any) { e["hiredDate"] = "2016" }, "employees[0].hiredDate is not a date"},
		"groups": {func(e map[string]any) { e["employeeGroups"] = 1 },
			"employees[0].employeeGroups is not an array"},
		"bad division": {func(e map[string]any) { e["divisionName"] = []any{} },
			"employees[0].divisionName is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeKOT(t, nil)
			change(t, config, &fake.Faults, "/employees?includeResigner=true", func(a any) { test.edit(member(a, 0)) })
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			wantError(t, err, test.want)
		})
	}
}

// TestKOTEndlessMonth checks that a month of years is not asked for day by day.
func TestKOTEndlessMonth(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"2099-12-31", "2026-04-30"} {
		fake, config := fakeKOT(t, nil)
		change(t, config, &fake.Faults, "/monthly-workings/2026-05", func(a any) { member(a, 0)["endDate"] = end })
		_, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: kotQuery}, config, english)
		wantError(t, err, "endDate is not the end of a month")
	}
}

func TestKOTUnknownPerson(t *testing.T) {
	t.Parallel()
	_, config := fakeKOT(t, nil)
	query := monthQuery{EmployeeID: "1000", Month: "2026-05"} // the visible number
	_, err := call[attendanceAnswer](t, listAttendance, query, config, english)
	wantError(t, err, "no attendance of employee 1000", "list_employees finds ids")
	_, err = call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, japanese)
	wantError(t, err, "従業員 1000", "list_employees")
	_, err = call[attendanceAnswer](t, listAttendance, monthQuery{EmployeeID: kotPerson, Month: "2020-01"}, config,
		english)
	wantError(t, err, "HTTP 400", "last three years")
}

// TestDeadline checks that a call that is over asks for nothing more.
func TestDeadline(t *testing.T) {
	t.Parallel()
	fake, config := fakeKOT(t, nil)
	ctx, cancel := context.WithCancel(pdktest.Context(t, pdktest.Options{Config: config}))
	cancel()
	_, err := callAt(ctx, listAttendance, kotQuery, noon)
	wantError(t, err, context.Canceled.Error())
	if n := len(fake.Requests.All()); n > 0 {
		t.Errorf("%d requests", n)
	}
}
