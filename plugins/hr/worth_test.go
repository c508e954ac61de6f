package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// at runs a tool at a time of the tests' choosing.
func at[T, In any](t *testing.T, run tool[In], in In, config settings, now time.Time) (*T, error) {
	t.Helper()
	ctx := pdktest.Context(t, pdktest.Options{Config: config, Locale: "en"})
	out, err := callAt(ctx, run, in, now)
	if err != nil {
		return nil, err
	}
	return out.(*T), nil
}

// incompleteOf writes incomplete days as "DATE KIND".
func incompleteOf(w worth) string {
	list := []string{}
	for _, d := range w.IncompleteDays {
		list = append(list, string(d.Date)+" "+d.Kind)
	}
	return strings.Join(list, ", ")
}

func noonOf(day string) time.Time { return date(day).midnight().Add(12 * time.Hour) }

// TestIncompleteDays checks that every fault of a day makes the month not final, with the day and the reason, and that a
// day without fault does not.
func TestIncompleteDays(t *testing.T) {
	t.Parallel()
	day := "2026-05-20"
	for _, test := range []struct {
		name, want string
		freee      freeefake.Day
		kot        *kotfake.Day
	}{
		{"ordinary", "", freeefake.Day{Work: []freeefake.Span{{In: "09:00", Out: "18:00"}}},
			&kotfake.Day{In: "09:00", Out: "18:00", Break: 60}},
		{"clock-out forgotten", day + " missing_clock_out", freeefake.Day{Work: []freeefake.Span{{In: "09:00"}}},
			&kotfake.Day{In: "09:00"}},
		{"clock-in forgotten", day + " missing_clock_in", freeefake.Day{Work: []freeefake.Span{{Out: "18:00"}}},
			&kotfake.Day{Out: "18:00"}},
		{"end of a break forgotten", day + " missing_break_time",
			freeefake.Day{Work: []freeefake.Span{{In: "09:00", Out: "18:00"}}, Breaks: []freeefake.Span{{In: "12:00"}}},
			nil},
		{"breaks longer than the work", day + " impossible_time",
			freeefake.Day{Work: []freeefake.Span{{In: "09:00", Out: "10:00"}},
				Breaks: []freeefake.Span{{In: "10:00", Out: "18:00"}}}, nil},
		{"end before the start", day + " impossible_time",
			freeefake.Day{Work: []freeefake.Span{{In: "18:00", Out: "09:00"}}},
			&kotfake.Day{In: "18:00", Out: "09:00"}},
		{"two special leaves", day + " unreadable", freeefake.Day{TwoSpecial: true}, nil},
		{"a fault by the vendor's word", day + " vendor_fault", freeefake.Day{Work: []freeefake.Span{{In: "09:00"}}},
			&kotfake.Day{In: "09:00", Out: "18:00", Error: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			configs := map[string]settings{}
			if !strings.HasSuffix(test.want, vendorFault) {
				_, configs["102"] = fakeFreee(t, func(o *freeefake.Options) {
					o.Companies[0].Employees[1].Days = map[string]freeefake.Day{day: test.freee}
				})
			}
			if test.kot != nil {
				_, configs[kotPerson] = fakeKOT(t, func(o *kotfake.Options) {
					o.Employees = kotfake.Demo()
					o.Employees[0].Days = map[string]kotfake.Day{day: *test.kot}
				})
			}
			for id, config := range configs {
				query := monthQuery{EmployeeID: id, Month: "2026-05"}
				days, err := at[attendanceAnswer](t, listAttendance, query, config, noon)
				if err != nil {
					t.Fatal(err)
				}
				sums, err := at[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, noon)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range []worth{days.worth, sums.worth} {
					if got := incompleteOf(w); got != test.want || w.IsFinal != (test.want == "") {
						t.Errorf("%s: incomplete days %q, final %v; want %q", config.Vendor, got, w.IsFinal, test.want)
					}
				}
				for _, r := range days.Records {
					if r.WorkMinutes != nil && *r.WorkMinutes < 0 || string(r.Date) == day && test.want != "" &&
						r.WorkMinutes != nil && len(r.faults) > 0 && r.faults[0].kind != vendorFault {
						t.Errorf("%s: the faulty day has %d minutes of work", config.Vendor, *r.WorkMinutes)
					}
				}
			}
		})
	}
}

// TestRunningMonth holds what is said of a month before, while and after it runs.
func TestRunningMonth(t *testing.T) {
	t.Parallel()
	for _, vendor := range []string{"freee", "kot"} {
		for _, test := range []struct{ today, incomplete, err string }{
			{"2026-04-30", "", "has not begun, today is 2026-04-30"},
			{"2026-05-01", "2026-05-01 month_not_over", ""},
			{"2026-05-20", "2026-05-20 month_not_over", ""}, // work has begun on this day and not ended
			{"2026-05-21", "2026-05-20 missing_clock_out, 2026-05-21 month_not_over", ""},
			{"2026-05-31", "2026-05-20 missing_clock_out, 2026-05-31 month_not_over", ""},
			{"2026-06-01", "2026-05-20 missing_clock_out", ""},
		} {
			t.Run(vendor+" "+test.today, func(t *testing.T) {
				t.Parallel()
				now := noonOf(test.today)
				var config settings
				query := monthQuery{Month: "2026-05"}
				if vendor == "freee" {
					query.EmployeeID = "102"
					_, config = fakeFreee(t, func(o *freeefake.Options) {
						o.Now = func() time.Time { return noon }
						o.Companies[0].Employees[1].Days = map[string]freeefake.Day{"2026-05-20": {Work: []freeefake.Span{{In: "09:00"}}}}
					})
				} else {
					query.EmployeeID = kotPerson
					_, config = fakeKOT(t, func(o *kotfake.Options) {
						o.Employees = kotfake.Demo()
						o.Employees[0].Days = map[string]kotfake.Day{"2026-05-20": {In: "09:00"}}
					})
				}
				sums, err := at[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, now)
				if test.err != "" {
					wantError(t, err, test.err)
					_, err = at[attendanceAnswer](t, listAttendance, query, config, now)
					wantError(t, err, test.err)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := incompleteOf(sums.worth); got != test.incomplete || sums.IsFinal ||
					sums.AsOf != date(test.today) {
					t.Errorf("as of %s: incomplete days %q, final %v; want %q", sums.AsOf, got, sums.IsFinal,
						test.incomplete)
				}
			})
		}
	}
}

// TestUpcoming checks that somebody whose first day is to come is not active.
func TestUpcoming(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, func(o *freeefake.Options) { o.Companies[0].Employees[1].Hired = "2027-04-01" })
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Status: active}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range answer.Employees {
		if e.ID == "102" {
			t.Errorf("hired in the future and active: %s", encode(t, e))
		}
	}
	answer, err = call[employeesAnswer](t, listEmployees, employeesQuery{Status: upcoming}, config, english)
	if err != nil || answer.TotalCount != 1 || answer.Employees[0].ID != "102" {
		t.Errorf("upcoming: %s, %v", encode(t, answer), err)
	}
}

// TestNotesConcernThePeopleShown checks that a note counts nobody who is not in the answer.
func TestNotesConcernThePeopleShown(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	_, kot := fakeKOT(t, nil)
	for _, test := range []struct {
		config settings
		query  employeesQuery
		notes  int
	}{
		{config, employeesQuery{}, 1},
		{config, employeesQuery{Name: "花子"}, 0},
		{config, employeesQuery{Limit: 1}, 0},
		{config, employeesQuery{Status: retired}, 1},
		{kot, employeesQuery{}, 1},
		{kot, employeesQuery{Status: active}, 0},
	} {
		answer, err := call[employeesAnswer](t, listEmployees, test.query, test.config, english)
		if err != nil || len(answer.Notes) != test.notes {
			t.Errorf("%s %+v: %q, want %d notes (%v)", test.config.Vendor, test.query, answer.Notes, test.notes, err)
		}
	}
}

// late is a company of n people of whom the first few have overtime: the first 46 hours, the second 47 and so on.
func late(n, few int) func(*freeefake.Options) {
	return func(o *freeefake.Options) {
		crowd(n)(o)
		for i, e := range o.Companies[0].Employees {
			e.Days = map[string]freeefake.Day{}
			for day := 11; i < few && day <= 15; day++ {
				// Nine hours with an hour's break are a day; what goes beyond is overtime.
				e.Days[fmt.Sprintf("2026-05-%02d",
					day)] = freeefake.Day{Work: []freeefake.Span{{In: "06:00", Out: "24:00"}},
					Breaks: []freeefake.Span{{In: "12:00", Out: "12:48"}}}
			}
			if i < few {
				e.Days["2026-05-18"] = freeefake.Day{Work: []freeefake.Span{{In: "09:00",
					Out: fmt.Sprintf("%02d:00", 18+i)}}}
			}
		}
	}
}

// TestWholeCompany checks that who exceeded 45 hours is one call for 300 people, with one request for each person's
// month and the pages of two lists, and one more to find the pay month.
func TestWholeCompany(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, late(300, 4))
	limit := 45 * 60
	answer, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery{Month: "2026-05"}, &limit}, config,
		english)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range answer.Employees {
		got = append(got, fmt.Sprint(e.Name, " ", e.TotalOvertime/60))
	}
	if strings.Join(got, ", ") != "社員 3 50, 社員 2 49, 社員 1 48, 社員 0 47" || answer.Total != 4 || !answer.IsFinal ||
		len(answer.Failed) != 0 {
		t.Errorf("above 45 hours are %q of %d, final %v", got, answer.Total, answer.IsFinal)
	}
	lists := 4 + 3 // pages of employees, the last of them empty, and of departments
	if n := len(fake.Requests.All()); n != lists+300+1 {
		t.Errorf("%d requests for 300 people", n)
	}
}

// countAtOnce stands before a vendor and counts the requests to paths with a text that are there at the same time. It
// answers none of them before hold are.
func countAtOnce(t *testing.T, config *settings, text string, hold int) (most func() int) {
	t.Helper()
	target, err := url.Parse(config.FreeeURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.Transport = web.Transport
	var mu sync.Mutex
	here, highest := 0, 0
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, text) {
			mu.Lock()
			here++
			if highest = max(highest, here); highest == hold && here == hold {
				select {
				case <-all:
				default:
					close(all)
				}
			}
			mu.Unlock()
			select {
			case <-all:
			case <-r.Context().Done():
			}
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				here--
			}()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config.FreeeURL = server.URL + target.Path
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return highest
	}
}

// TestDaysAtOnce: the days of a month that freee does not give as a whole are read as many at once as may be.
func TestDaysAtOnce(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[0].NextMonth = false
		o.Companies[0].Employees[1].Days["2026-05-21"] = freeefake.Day{TwoSpecial: true}
	})
	most := countAtOnce(t, &config, "/work_records/", requestsAtOnce)
	days, err := call[attendanceAnswer](t, listAttendance, monthQuery{EmployeeID: "102", Month: "2026-05"}, config,
		english)
	if err != nil {
		t.Fatal(err)
	}
	if days.TotalRecords != 30 || len(days.IncompleteDays) != 1 || most() != requestsAtOnce {
		t.Errorf("%d records, %d at once, incomplete %v", days.TotalRecords, most(), days.IncompleteDays)
	}
}

// TestFewRequestsLeft: when few requests of the hour are left, a call sends one at a time.
func TestFewRequestsLeft(t *testing.T) {
	t.Parallel()
	people := late(20, 1)
	_, config := fakeFreee(t, func(o *freeefake.Options) {
		people(o)
		o.RateLimit = lowRemaining
	})
	most := countAtOnce(t, &config, "work_record_summaries", 1)
	answer, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery: monthQuery{Month: "2026-05"}},
		config, english)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Employees) != 20 || most() != 1 {
		t.Errorf("%d people, %d requests at once", len(answer.Employees), most())
	}
}

// TestMonthsAtOnce checks that the months of several people are under way at once, as many as are meant to be: the
// vendor answers none before.
func TestMonthsAtOnce(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, late(2*requestsAtOnce+1, 1))
	target, err := url.Parse(config.FreeeURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.Transport = web.Transport
	var mu sync.Mutex
	here, most, months := 0, 0, 0
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "work_record_summaries") {
			proxy.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		months++
		first := months <= 2 // of the first person, in whose months the others' are found
		if here++; !first && here == requestsAtOnce {
			close(all)
		}
		most = max(most, here)
		mu.Unlock()
		if !first {
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
		mu.Lock()
		here--
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config.FreeeURL = server.URL + target.Path
	answer, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery: monthQuery{Month: "2026-05"}},
		config, english)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range answer.Employees {
		if late := e.Name == "社員 0"; late != (e.TotalOvertime == 47*60) {
			t.Errorf("%s has %d minutes of overtime", e.Name, e.TotalOvertime)
		}
	}
	if len(answer.Employees) != 2*requestsAtOnce+1 || len(answer.Failed) != 0 {
		t.Errorf("%d people, failed %v", len(answer.Employees), answer.Failed)
	}
	if most != requestsAtOnce || months != 2*requestsAtOnce+1+1 {
		t.Errorf("%d months were asked for, at most %d at once; want %d at once", months, most, requestsAtOnce)
	}
	if n := len(fake.Requests.All()); n != 2+months { // a page of employees, and one of departments
		t.Errorf("%d requests", n)
	}
}

// TestOddIDs: an employee has one id. Other spellings, which the vendor might take for the same person past a policy
// that compares ids, reach no vendor.
func TestOddIDs(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, nil)
	odd := []string{"0102", "00102", "+102", "-102", "102.0", "1e2", "０１０２", "１０２", " 102", "102 ", "102\n", "0x66",
		"102/../101", "102%2f", "999999999999999999999", "102?x", "१०२"}
	for _, id := range odd {
		query := monthQuery{EmployeeID: id, Month: "2026-05"}
		if _, err := call[attendanceAnswer](t, listAttendance, query, config, english); err == nil ||
			!strings.Contains(err.Error(), "list_employees finds them") {
			t.Errorf("list_attendance of %q: %v", id, err)
		}
		if _, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config,
			english); err == nil || !strings.Contains(err.Error(), "list_employees finds them") {
			t.Errorf("calculate_overtime of %q: %v", id, err)
		}
	}
	answer, err := call[overtimePage](t, calculateOvertime,
		overtimeQuery{monthQuery: monthQuery{EmployeeIDs: odd, Month: "2026-05"}}, config, english)
	if err != nil || len(answer.Failed) != len(odd) || len(answer.Employees) != 0 {
		t.Errorf("%d of %d failed: %v", len(answer.Failed), len(odd), err)
	}
	for _, company := range []string{"012345", "１２３４５", "-12345"} {
		query := monthQuery{CompanyID: company, EmployeeID: "102", Month: "2026-05"}
		if _, err := call[attendanceAnswer](t, listAttendance, query, config, english); err == nil {
			t.Errorf("the company %q was taken", company)
		}
	}
	if n := len(fake.Requests.All()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// TestDepartment checks that the members of a department are one call, with those who are there beside another one
// marked.
func TestDepartment(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	for department, want := range map[string]string{
		"営業部":   "架空 太郎 secondary, 見本 花子",
		"経営企画室": "架空 太郎",
		"本社":    "架空 太郎",
		"開発部":   "例示 次郎", // the other one left in March
		"総務部":   "",
	} {
		query := monthQuery{Month: "2026-05", Department: department}
		sums, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
		if err != nil {
			t.Fatal(err)
		}
		days, err := call[attendancePage](t, listAttendance, query, config, english)
		if err != nil {
			t.Fatal(err)
		}
		var got, again []string
		describe := func(who *identity) string {
			if who.IsSecondary {
				return who.Name + " secondary"
			}
			return who.Name
		}
		for _, e := range sums.Employees {
			got = append(got, describe(e.identity))
		}
		for _, e := range days.Employees {
			again = append(again, describe(e.identity))
		}
		if strings.Join(got, ", ") != want || strings.Join(again, ", ") != want {
			t.Errorf("%s: %q and %q, want %s", department, got, again, want)
		}
		if department == "総務部" && (len(sums.Notes) != 1 || !strings.Contains(sums.Notes[0], "営業部")) {
			t.Errorf("a department that nobody is in: %q", sums.Notes)
		}
	}
}

// TestPagesOfPeople checks that pages are read one by one, and only for the people on them.
func TestPagesOfPeople(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, late(120, 0))
	seen := map[string]bool{}
	query := overtimeQuery{monthQuery: monthQuery{Month: "2026-05"}}
	for pages := 1; ; pages++ {
		before := len(fake.Requests.All())
		answer, err := call[overtimePage](t, calculateOvertime, query, config, english)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Employees {
			seen[e.EmployeeID] = true
		}
		if requests := len(fake.Requests.All()) - before; answer.Total != 120 || requests > 4+len(answer.Employees)+1 {
			t.Errorf("a page of %d people of %d took %d requests", len(answer.Employees), answer.Total, requests)
		}
		if answer.NextOffset == nil {
			if pages != 3 || len(seen) != 120 {
				t.Errorf("%d people on %d pages", len(seen), pages)
			}
			return
		}
		query.Offset = *answer.NextOffset
	}
}

// TestSeveral holds what becomes of several ids: each is read once, and one that cannot be read does not spoil the
// others.
func TestSeveral(t *testing.T) {
	t.Parallel()
	_, freee := fakeFreee(t, func(o *freeefake.Options) { o.Companies[0].Role = "attendance_manager" })
	_, kot := fakeKOT(t, nil)
	other := kotfake.Demo()[1].Key
	for _, test := range []struct {
		config settings
		ids    []string
		failed string
	}{
		{freee, []string{"102", "999999", "103", "102"}, "999999"},
		{freee, []string{"102", "x", "103"}, "x"},
		{kot, []string{kotPerson, "nobody", other}, "nobody"},
	} {
		query := monthQuery{Month: "2026-05", EmployeeIDs: test.ids}
		sums, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery: query}, test.config, english)
		if err != nil {
			t.Fatal(err)
		}
		days, err := call[attendancePage](t, listAttendance, query, test.config, english)
		if err != nil {
			t.Fatal(err)
		}
		if len(sums.Employees) != 2 || len(days.Employees) != 2 || sums.Total != 3 || sums.IsFinal || days.IsFinal {
			t.Errorf("%q: %d and %d of %d, final %v", test.ids, len(sums.Employees), len(days.Employees), sums.Total,
				sums.IsFinal)
		}
		for _, failed := range [][]failedRead{sums.Failed, days.Failed} {
			if len(failed) != 1 || failed[0].EmployeeID != test.failed || failed[0].Reason == "" {
				t.Errorf("%q: failed are %v", test.ids, failed)
			}
		}
	}
	_, err := call[overtimePage](t, calculateOvertime,
		overtimeQuery{monthQuery: monthQuery{Month: "2026-05", EmployeeID: "102", Department: "営業部"}}, freee, english)
	wantError(t, err, "give one of employee_id, employee_ids and department")
}

// TestUndecided checks that nobody below a limit is passed over whose days are incomplete.
func TestUndecided(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	limit := 600
	answer, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery{Month: "2026-05"}, &limit}, config,
		english)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Employees) != 1 || answer.Employees[0].EmployeeID != "102" || len(answer.Undecided) != 1 ||
		answer.Undecided[0].EmployeeID != "103" || answer.IsFinal {
		t.Errorf("got %s", encode(t, answer))
	}
}

// TestWholeCompanyOfKOT checks that KING OF TIME's lists, which are of the whole company, are read once for everybody.
func TestWholeCompanyOfKOT(t *testing.T) {
	t.Parallel()
	fake, config := fakeKOT(t, func(o *kotfake.Options) {
		days := map[string]kotfake.Day{}
		for day := 11; day <= 15; day++ {
			days[fmt.Sprintf("2026-05-%02d", day)] = kotfake.Day{In: "06:00", Out: "24:00", Break: 60}
		}
		for i := range 300 {
			e := &kotfake.Employee{Key: fmt.Sprintf("key-%03d", i), Code: fmt.Sprint(i), LastName: "社員",
				FirstName: fmt.Sprint(i), Hired: "2020-04-01", Division: "本社", Type: "正社員"}
			if i%100 == 7 {
				e.Days = days
			}
			o.Employees = append(o.Employees, e)
		}
	})
	limit := 44 * 60
	answer, err := call[overtimePage](t, calculateOvertime, overtimeQuery{monthQuery{Month: "2026-05"}, &limit}, config,
		english)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Employees) != 3 || answer.Total != 3 || !answer.IsFinal {
		t.Errorf("%d of %d above the limit, final %v", len(answer.Employees), answer.Total, answer.IsFinal)
	}
	if n := len(fake.Requests.All()); n > 6 { // employees, the month, and the days and clock times in two halves each
		t.Errorf("%d requests for 300 people", n)
	}
}

// TestFailures holds what a failed call says to a program: whether another try can help, and when.
func TestFailures(t *testing.T) {
	t.Parallel()
	soon := noon.Add(90 * time.Second).UTC().Format(httpDate)
	for _, test := range []struct {
		name      string
		vendor    string
		fault     fault.Fault
		retryable bool
		seconds   int // 0: null
	}{
		{"bad request", "freee", fault.Fault{Status: 400, Header: http.Header{"Retry-After": {"5"}}}, false, 0},
		{"not allowed", "freee", fault.Fault{Status: 403, Body: `{"message":"x","code":"user_do_not_have_permission"}`},
			false, 0},
		{"refused token", "freee", fault.Fault{Status: 401}, false, 0},
		{"abuse control", "freee", fault.Fault{Status: 403, Body: "<html>"}, true, 600},
		{"too many", "freee", fault.Fault{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, true, 7},
		{"too many, until a date", "freee", fault.Fault{Status: 429, Header: http.Header{"Retry-After": {soon}}}, true,
			90},
		{"too many, until the hour is over", "freee",
			fault.Fault{Status: 429, Header: http.Header{"X-Ratelimit-Reset": {"2026-11-20T04:00:00.000000Z"}}}, true,
			3600},
		{"server error", "freee", fault.Fault{Status: 500}, true, 0},
		{"maintenance", "freee", fault.Fault{Status: 503, Header: http.Header{"Retry-After": {"120"}}}, true, 120},
		{"no answer", "freee", fault.Fault{Drop: true}, true, 0},
		{"no JSON", "freee", fault.Fault{Body: "<html>"}, false, 0},
		{"too many", "kot", fault.Fault{Status: 403, Body: kotfake.TooManyRequests}, true, 0},
		{"closed until 18:30", "kot", fault.Fault{Status: 403,
			Body: `{"errors":[{"message":"Forbidden time zone.","code":104}]}`}, true, 6*3600 + 1800},
		{"too many", "smarthr", fault.Fault{Status: 429,
			Header: http.Header{"X-Rate-Limit-Remaining": {"0"}, "X-Rate-Limit-Reset": {"30"}}}, true, 30},
	} {
		t.Run(test.vendor+" "+test.name, func(t *testing.T) {
			t.Parallel()
			var config settings
			switch test.vendor {
			case "freee":
				fake, c := fakeFreee(t, nil)
				fake.Faults.Add(test.fault)
				config = c
			case "kot":
				fake, c := fakeKOT(t, nil)
				fake.Faults.Add(test.fault)
				config = c
			case "smarthr":
				fake, c := fakeSmartHR(t, nil)
				fake.Faults.Add(test.fault)
				config = c
			}
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			r := failed(err)
			f, ok := r.Structured.(failure)
			if !ok || !r.IsError || f.Error != err.Error() || f.Retryable != test.retryable ||
				or0(f.RetryAfter) != test.seconds {
				t.Errorf("got %s", encode(t, r.Structured))
			}
			if test.seconds > 0 && test.seconds < 600 &&
				!strings.Contains(f.Error, fmt.Sprint(test.seconds, " seconds")) {
				t.Errorf("the wait is not in the text: %s", f.Error)
			}
		})
	}
}

// TestHostFailures holds which errors of the host another try may not meet. A request that has no recording is none of
// them.
func TestHostFailures(t *testing.T) {
	t.Parallel()
	for code, retryable := range map[string]bool{
		abi.CodeNetwork: true, abi.CodeTimeout: true, abi.CodeInvalid: false, abi.CodeNotGranted: false,
		abi.CodeLimit: false, abi.CodeCredential: false,
	} {
		r := failed(fmt.Errorf("could not read: %w", &abi.Error{Code: code, Message: "x"}))
		if f := r.Structured.(failure); f.Retryable != retryable || f.RetryAfter != nil {
			t.Errorf("%s: got %s", code, encode(t, f))
		}
	}
}

// TestVendorsTextIsOneLine checks that what a vendor says cannot look like more than it is.
func TestVendorsTextIsOneLine(t *testing.T) {
	t.Parallel()
	text := `first\nsecond\r\n\u2028third\u202e`
	for vendor, body := range map[string]string{
		"freee":   `{"message":"` + text + `","code":"x\ny"}`,
		"kot":     `{"errors":[{"message":"` + text + `","code":"9\n9"}]}`,
		"smarthr": `{"message":"` + text + `","type":"x\ny"}`,
	} {
		var config settings
		planned := fault.Fault{Status: 400, Body: body}
		switch vendor {
		case "freee":
			fake, c := fakeFreee(t, nil)
			fake.Faults.Add(planned)
			config = c
		case "kot":
			fake, c := fakeKOT(t, nil)
			fake.Faults.Add(planned)
			config = c
		default:
			fake, c := fakeSmartHR(t, nil)
			fake.Faults.Add(planned)
			config = c
		}
		_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
		wantError(t, err, "first second third")
		if strings.ContainsAny(err.Error(), "\n\r\u2028\u202e") {
			t.Errorf("%s: %q", vendor, err)
		}
	}
}

// TestPermanentRefusals checks that a refusal that will not change is asked for once.
func TestPermanentRefusals(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 422} {
		fake, config := fakeFreee(t, nil)
		asked := map[string]int{}
		fake.Faults.Add(fault.Fault{Path: "/hr/api/v1/employees/999/**", Status: status,
			Body: `{"message":"no","code":"x"}`})
		config.FreeeURL = counting(t, config.FreeeURL, asked)
		_, err := call[overtimeAnswer](t, calculateOvertime,
			overtimeQuery{monthQuery: monthQuery{EmployeeID: "999", Month: "2026-05"}}, config, english)
		wantError(t, err, fmt.Sprint("HTTP ", status))
		months := 0
		for url, n := range asked {
			if n != 1 {
				t.Errorf("HTTP %d: %s was asked for %d times", status, url, n)
			}
			if strings.Contains(url, "work_record") {
				months++
			}
		}
		if months != 1 {
			t.Errorf("HTTP %d: %d months were asked for: %v", status, months, asked)
		}
	}
}

// counting stands in front of a server and counts the requests for each URL.
func counting(t *testing.T, base string, asked map[string]int) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.Transport = web.Transport
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.RequestURI()]++
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + target.Path
}

// ending is a context whose deadline is near, without ending by itself.
type ending struct{ context.Context }

func (ending) Deadline() (time.Time, bool) { return time.Now().Add(enough / 2), true }

// TestShortOfTime checks that what was read is shown when the call's time is nearly up, with those who were not read.
func TestShortOfTime(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, late(20, 1))
	ctx := ending{pdktest.Context(t, pdktest.Options{Config: config, Locale: "en"})}
	limit := 45 * 60
	out, err := callAt(ctx, calculateOvertime, overtimeQuery{monthQuery{Month: "2026-05"}, &limit}, noon)
	if err != nil {
		t.Fatal(err)
	}
	answer := out.(*overtimePage)
	if len(answer.Failed) != 19 || answer.IsFinal || !strings.Contains(answer.Failed[0].Reason, "nearly up") {
		t.Errorf("%d were not read, final %v", len(answer.Failed), answer.IsFinal)
	}
	if n := len(fake.Requests.All()); n > 6 {
		t.Errorf("%d requests", n)
	}
}
