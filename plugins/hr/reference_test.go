package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
)

// The tests in this file read freee's published schema and samples. They are not part of the project: where they are
// absent, the tests are skipped.

func referenceFile(t *testing.T, name string) []byte {
	t.Helper()
	root := cmp.Or(os.Getenv("HAKO_REFERENCE"), filepath.Join("..", "..", "..", "shared", "reference"))
	data, err := os.ReadFile(filepath.Join(root, "data", "freee", filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		t.Skip("freee's data are not here; HAKO_REFERENCE says where they are")
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReferenceMonth reads a month that has every field of the schema.
func TestReferenceMonth(t *testing.T) {
	t.Parallel()
	sample := string(referenceFile(t, "samples/SYNTHETIC_work_record_summary_pay2026-06.json"))
	fake, config := fakeFreee(t, nil)
	fake.Faults.Add(fault.Fault{Path: "/hr/api/v1/employees/102/work_record_summaries/2026/6", Body: sample})
	query := monthQuery{EmployeeID: "102", Month: "2026-05"}
	sums, err := call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if sums.TotalWork != 8370 || sums.TotalOvertime != 750 || sums.Breakdown.LegalHoliday != 180 ||
		*sums.Breakdown.LateNightWork != 270 ||
		sums.WorkingDays != 17 || *sums.PaidLeaveDays != 1.5 || *sums.AbsenceDays != 1 {
		t.Errorf("got %s", encode(t, sums))
	}
	days, err := call[attendanceAnswer](t, listAttendance, query, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if again := sumDays(days.Period, days.Records); again.TotalWork != sums.TotalWork ||
		again.TotalOvertime != sums.TotalOvertime || *again.PaidLeaveDays != 1.5 {
		t.Errorf("the days sum up to %s", encode(t, again))
	}
	if n := slices.IndexFunc(days.Records, func(r record) bool { return r.Date == "2026-05-15" }); n < 0 ||
		*days.Records[n].ClockOut != "25:00" {
		t.Errorf("15 May: %s", encode(t, days.Records))
	}
}

// TestReferenceOldDay checks that a body of 2018, which has no overtime, is an error about that and not a day without
// overtime.
func TestReferenceOldDay(t *testing.T) {
	t.Parallel()
	data := referenceFile(t, "samples/work_record_2018-04-18.json")
	_, err := readDay(t, data)
	wantError(t, err, "unknown overtime field", "total_excess_statutory_work_mins")
	var day map[string]any
	if err := json.Unmarshal(data, &day); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"total_overtime_work_mins", "total_excess_statutory_work_mins", "total_latenight_work_mins",
		"total_latenight_overtime_except_normal_work_min", "total_holiday_work_mins",
		"total_prescribed_holiday_work_mins"} {
		day[name] = 0
	}
	r, err := readDay(t, []byte(encode(t, day)))
	if err != nil || *r.WorkMinutes != 647 || *r.ClockOut != "21:37" || r.IsPaidLeave {
		t.Errorf("got %s, %v; want 647 minutes of work, though normal_work_mins is 480", encode(t, r), err)
	}
}

// TestReferenceErrors checks that every sample of a refusal is explained in freee's own words.
func TestReferenceErrors(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"error_400": 400, "error_400_two_special_holidays": 400, "error_401_expired": 401, "error_401_login": 401,
		"error_403_access_denied": 403, "error_403_forbidden": 403, "error_500": 500} {
		body := referenceFile(t, "samples/"+name+".json")
		var problem freeeProblem
		if err := json.Unmarshal(body, &problem); err != nil {
			t.Fatal(err)
		}
		fake, config := fakeFreee(t, nil)
		fake.Faults.Add(fault.Fault{Status: status, Body: string(body)})
		_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, japanese)
		wantError(t, err, problem.messages())
	}
}

// TestReferenceUser reads the published examples of users/me.
func TestReferenceUser(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"users_me_announcement-7635": "100", "users_me_freee-mcp": ""} {
		fake, config := fakeFreee(t, nil)
		config.CompanyID = ""
		fake.Faults.Add(fault.Fault{Path: "/hr/api/v1/users/me",
			Body: string(referenceFile(t, "samples/"+name+".json"))})
		s := &session{settings: config, lang: english, now: noon}
		if err := s.chooseVendor(); err != nil {
			t.Fatal(err)
		}
		f := s.vendor.(*freee)
		err := f.resolveCompany(t.Context())
		if f.company != want || (want == "") != (err != nil) {
			t.Errorf("%s: company %q, %v", name, f.company, err)
		}
	}
}

// TestReferenceRequests holds every request of the three tools against the schema: the path exists, what is required is
// there, and what it does not know is not sent.
func TestReferenceRequests(t *testing.T) {
	t.Parallel()
	var schema struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
		}
	}
	if err := json.Unmarshal(referenceFile(t, "freee-hr-openapi3.json"), &schema); err != nil {
		t.Fatal(err)
	}
	fake, config := fakeFreee(t, nil)
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	if err == nil {
		_, err = call[attendanceAnswer](t, listAttendance,
			monthQuery{CompanyID: "67890", EmployeeID: "201", Month: "2026-05"}, config, english)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range fake.Requests.All() {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.Path)
		}
		path := strings.TrimPrefix(r.Path, "/hr")
		template := ""
		for candidate := range schema.Paths {
			if fits(candidate, path) && (template == "" ||
				strings.Count(candidate, "{") < strings.Count(template, "{")) {
				template = candidate
			}
		}
		query := r.Query
		for _, p := range schema.Paths[template]["get"].Parameters {
			if p.In == "query" && p.Required && !query.Has(p.Name) {
				t.Errorf("%s lacks %s", r.Path, p.Name)
			}
			query.Del(p.Name)
		}
		if template == "" || len(query) > 0 {
			t.Errorf("%s (%s) has parameters that freee does not know: %v", r.Path, template, query)
		}
	}
}

// fits reports whether a path is one of a template with variables in braces.
func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, segment := range want {
		if segment != got[i] && !strings.HasPrefix(segment, "{") {
			return false
		}
	}
	return true
}
