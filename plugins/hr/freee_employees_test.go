package main

import (
	"fmt"
	"strings"
	"testing"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	"github.com/hako-run/hako/pdk"
)

// crowd is a company of n people.
func crowd(n int) func(*freeefake.Options) {
	return func(o *freeefake.Options) {
		people := make([]*freeefake.Employee, n)
		for i := range people {
			people[i] = &freeefake.Employee{
				ID: 1000 + i, Num: fmt.Sprint(n - i), LastName: "社員", FirstName: fmt.Sprint(i), Hired: "2020-04-01",
				EmploymentType: freeefake.Text("regular"),
				Memberships:    []freeefake.Membership{{Group: "部" + fmt.Sprint(i%7)}},
			}
		}
		o.Companies = []*freeefake.Company{{ID: 12345, Name: "大会社", Role: "company_admin", Self: 1000, NextMonth: true,
			Employees: people}}
	}
}

// TestRequestsForEmployees holds how many requests a list takes: the pages of three lists, the first of which tells
// only by a page that is not full that it was the last, and one request for the company where nothing names it.
func TestRequestsForEmployees(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		people   int
		change   func(*settings)
		requests int
	}{
		{500, func(*settings) {}, 16},
		{200, func(s *settings) { s.CompanyID = "" }, 8},
		{200, func(s *settings) { s.IncludeEmploymentType = false }, 5},
		{199, func(*settings) {}, 6},
		{5, func(*settings) {}, 3},
		{0, func(*settings) {}, 3},
	} {
		fake, config := fakeFreee(t, crowd(test.people))
		test.change(&config)
		answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Limit: 1000}, config, english)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Employees) != test.people || answer.TotalCount != test.people {
			t.Errorf("%d employees of %d, want %d", len(answer.Employees), answer.TotalCount, test.people)
		}
		requests := len(fake.Requests.All())
		t.Logf("%d employees: %d requests", test.people, requests)
		if requests != test.requests {
			t.Errorf("%d requests for %d employees, want %d", requests, test.people, test.requests)
		}
	}
}

func TestPageOfEmployees(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, crowd(120))
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Limit: 50, Offset: 50, Department: "部3"},
		config, english)
	if err != nil || len(answer.Employees) != 0 || answer.TotalCount != 17 || answer.NextOffset != nil {
		t.Errorf("beyond the end: %+v, %v", answer, err)
	}
	answer, err = call[employeesAnswer](t, listEmployees, employeesQuery{Limit: 50}, config, english)
	if err != nil || len(answer.Employees) != 50 || answer.TotalCount != 120 || *answer.NextOffset != 50 {
		t.Fatalf("first page: %d of %d, %v", len(answer.Employees), answer.TotalCount, err)
	}
	if got := *answer.Employees[1].Code; got != "2" {
		t.Errorf("the second by number is %s: numbers are to be ordered as numbers", got)
	}
}

// TestShiftingPages checks that what offset paging repeats is given once, and that what it skips is told.
func TestShiftingPages(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, crowd(3))
	change(t, config, &fake.Faults, "/api/v1/companies/12345/employees", func(answer any) {
		list := answer.([]any)
		list[2] = list[0]
	})
	change(t, config, &fake.Faults, "/api/v1/employee_group_memberships?company_id=12345&base_date=2026-11-20",
		func(answer any) {
			member(answer)["total_count"] = 4
		})
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Employees) != 2 {
		t.Errorf("%d employees, want each once", len(answer.Employees))
	}
	if notes := strings.Join(answer.Notes, "\n"); !strings.Contains(notes, "counts 4") {
		t.Errorf("notes do not tell of the missing one: %s", notes)
	}
}

func TestFreeeEmployee(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*freeefake.Employee)
		check  func(employee) bool
	}{
		{"regular", func(e *freeefake.Employee) {}, func(e employee) bool { return e.Type == fullTime }},
		{"part-time", kind("part-time"), func(e employee) bool { return e.Type == partTime }},
		{"fixed-term", kind("fixed-term"), func(e employee) bool { return e.Type == contract }},
		{"temporary", kind("temporary"), func(e employee) bool { return e.Type == contract }},
		{"board member", kind("board-member"),
			func(e employee) bool { return e.Type == executive && *e.TypeRaw == "board-member" }},
		{"other", kind(""), func(e employee) bool { return e.Type == unknown && *e.TypeRaw == "" }},
		{"unknown kind", kind("gig"), func(e employee) bool { return e.Type == unknown && *e.TypeRaw == "gig" }},
		{"the designs' spelling", kind("part_time"), func(e employee) bool { return e.Type == unknown }},
		{"null kind", func(e *freeefake.Employee) { e.EmploymentType = nil },
			func(e employee) bool { return e.Type == unknown && e.TypeRaw == nil }},
		{"retires today", func(e *freeefake.Employee) { e.Retired = "2026-11-20" },
			func(e employee) bool { return e.Status == active }},
		{"retired yesterday", func(e *freeefake.Employee) { e.Retired = "2026-11-19" },
			func(e employee) bool { return e.Status == retired }},
		{"main duty last", func(e *freeefake.Employee) {
			e.Memberships = []freeefake.Membership{{Group: "兼務", Duty: "sub_duty"}, {Group: "無印"},
				{Group: "主務", Position: "課長", Duty: "main_duty"}}
		}, func(e employee) bool { return *e.Department == "主務" && *e.Position == "課長" }},
		{"no main duty", func(e *freeefake.Employee) {
			e.Memberships = []freeefake.Membership{{Group: "兼務", Duty: "sub_duty"}, {Group: "無印"}}
		}, func(e employee) bool { return *e.Department == "無印" && e.Position == nil }},
		{"no department", func(e *freeefake.Employee) { e.Memberships = nil },
			func(e employee) bool { return e.Department == nil }},
		{"title for a position", func(e *freeefake.Employee) { e.Title = "技師" },
			func(e employee) bool { return *e.Position == "技師" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, config := fakeFreee(t, func(o *freeefake.Options) {
				crowd(1)(o)
				test.change(o.Companies[0].Employees[0])
			})
			answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			if err != nil {
				t.Fatal(err)
			}
			if !test.check(answer.Employees[0]) {
				t.Errorf("got %s", encode(t, answer.Employees[0]))
			}
		})
	}
}

func kind(raw string) func(*freeefake.Employee) {
	return func(e *freeefake.Employee) { e.EmploymentType = freeefake.Text(raw) }
}

// TestEmploymentMonth checks that the month that freee is asked for is the one that it answers with the current one.
func TestEmploymentMonth(t *testing.T) {
	t.Parallel()
	for nextMonth, want := range map[bool]string{true: "10", false: "11"} {
		fake, config := fakeFreee(t, func(o *freeefake.Options) {
			crowd(1)(o)
			o.Companies[0].NextMonth = nextMonth
		})
		if _, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english); err != nil {
			t.Fatal(err)
		}
		if last := fake.Requests.All()[2]; last.Query.Get("month") != want {
			t.Errorf("paid in the following month %t: asked for month %s, want %s", nextMonth, last.Query.Get("month"),
				want)
		}
	}
}

// TestMissingEmployeeFields checks that a field that is needed and missing, or of another type, is an error with its
// name.
func TestMissingEmployeeFields(t *testing.T) {
	t.Parallel()
	everybody := "/api/v1/companies/12345/employees"
	groups := "/api/v1/employee_group_memberships?company_id=12345&base_date=2026-11-20"
	for _, test := range []struct {
		name, target string
		edit         func(any)
		want         string
	}{
		{"id", everybody, func(a any) { delete(member(a, 0), "id") }, "lacks the field employees[0].id"},
		{"id as text", everybody, func(a any) { member(a, 0)["id"] = "12a" }, "employees[0].id is not an integer"},
		{"id with a fraction", everybody, func(a any) { member(a, 0)["id"] = 1.5 },
			"employees[0].id is not an integer"},
		{"retire_date", everybody, func(a any) { delete(member(a, 0), "retire_date") },
			"lacks the field employees[0].retire_date"},
		{"retire_date, no date", everybody, func(a any) { member(a, 0)["retire_date"] = "soon" },
			"employees[0].retire_date is not a date"},
		{"entry_date, no date", everybody, func(a any) { member(a, 0)["entry_date"] = "2020-02-30" },
			"employees[0].entry_date is not a date"},
		{"name as a number", everybody, func(a any) { member(a, 0)["display_name"] = 7 },
			"employees[0].display_name is not a string"},
		{"a person that is no object", everybody, func(a any) { a.([]any)[0] = nil }, "employees[0] is not an object"},
		{"total_count", groups, func(a any) { delete(member(a), "total_count") }, "lacks the field total_count"},
		{"memberships", groups, func(a any) { delete(member(a), "employee_group_memberships") },
			"lacks the field employee_group_memberships"},
		{"group_memberships", groups, func(a any) {
			member(a, "employee_group_memberships",
				0)["group_memberships"] = "x"
		}, "employee_group_memberships[0].group_memberships is not an array"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeFreee(t, crowd(2))
			change(t, config, &fake.Faults, test.target, test.edit)
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			wantError(t, err, test.want)
		})
	}
}

// TestOptionalEmployeeFields checks that what may be missing is null, and a name is found where there is one.
func TestOptionalEmployeeFields(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, crowd(1))
	change(t, config, &fake.Faults, "/api/v1/companies/12345/employees", func(a any) {
		for _, name := range []string{"entry_date", "num", "display_name", "month_of_pay_day"} {
			delete(member(a, 0), name)
		}
	})
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	if err != nil {
		t.Fatal(err)
	}
	if e := answer.Employees[0]; e.HireDate != nil || e.Code != nil || e.Name != "社員 0" {
		t.Errorf("got %s", encode(t, e))
	}
	config.IncludeEmploymentType = false
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "lacks the field display_name")
}

func TestFilterEmployees(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	for _, test := range []struct {
		name  string
		query employeesQuery
		want  string
	}{
		{"everybody", employeesQuery{}, "101 102 103 104 105"},
		{"active", employeesQuery{Status: active}, "101 102 103 105"},
		{"retired", employeesQuery{Status: retired}, "104"},
		{"department", employeesQuery{Department: "営業部"}, "101 102"},
		{"parent department", employeesQuery{Department: "本社"}, "101"},
		{"name", employeesQuery{Name: "見本花"}, "102"},
		{"several", employeesQuery{Department: "営業部", Name: "太郎"}, "101"},
		{"name in another order", employeesQuery{Name: "花子　見本"}, "102"},
		{"nobody", employeesQuery{Name: "?"}, ""},
	} {
		answer, err := call[employeesAnswer](t, listEmployees, test.query, config, english)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range answer.Employees {
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{Status: onLeave}, config, english)
	wantError(t, err, "freee does not expose the status on_leave", "active, retired")
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{Status: onLeave}, config, japanese)
	wantError(t, err, "freeeは在籍ステータス on_leave を公開していない")
	unnamed, err := call[employeesAnswer](t, listEmployees, employeesQuery{Name: "みほん"}, config, japanese)
	if err != nil || !strings.Contains(strings.Join(unnamed.Notes, " "), "「みほん」を含む従業員はいません（全5人）") {
		t.Errorf("no note on a name that nobody has: %v, %v", unnamed, err)
	}
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Department: "人事"}, config, english)
	if err != nil || !strings.Contains(strings.Join(answer.Notes, " "), "営業部, 本社, 経営企画室, 開発部") {
		t.Errorf("no departments in the notes: %v, %v", answer, err)
	}
}

func TestCompany(t *testing.T) {
	t.Parallel()
	_, config := fakeFreee(t, nil)
	config.CompanyID = ""
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "several companies", "12345 架空商事株式会社", "67890 見本製作所")
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{CompanyID: "abc"}, config, english)
	wantError(t, err, `company_id is "abc"`, "integers")
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{CompanyID: "-1"}, config, english)
	wantError(t, err, "integers")
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{CompanyID: "12345"}, config, english)
	if err != nil || answer.CompanyID != "12345" {
		t.Errorf("by argument: %v, %v", answer, err)
	}
	_, config = fakeFreee(t, crowd(1))
	config.CompanyID = ""
	if answer, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english); err != nil ||
		answer.CompanyID != "12345" {
		t.Errorf("the only one: %v, %v", answer, err)
	}
	_, config = fakeFreee(t, func(o *freeefake.Options) { o.Companies = []*freeefake.Company{} })
	config.CompanyID = ""
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "no company")
}

// TestConnectedCompany checks that the company that was chosen at consent, which the host tells, is the default.
func TestConnectedCompany(t *testing.T) {
	t.Parallel()
	if got := companyOf(&pdk.HTTPResponse{Credential: map[string]string{"company_id": "67890"}}); got != "67890" {
		t.Errorf("company is %q", got)
	}
	f := &freee{user: &freeeUser{chosen: "67890", companies: []freeeMembership{{id: "12345"}, {id: "67890"}}}}
	if err := f.resolveCompany(t.Context()); err != nil || f.company != "67890" {
		t.Errorf("company is %q, %v", f.company, err)
	}
}
