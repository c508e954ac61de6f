package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	smarthrfake "github.com/hako-run/hako/dev/fakes/smarthr"
)

func TestSmartHRPages(t *testing.T) {
	t.Parallel()
	var crews []*smarthrfake.Crew
	for i := range 250 {
		crews = append(crews, &smarthrfake.Crew{ID: fmt.Sprintf("id-%03d", i), Code: fmt.Sprint(i), LastName: "社員",
			PresetType: "full_timer", Status: "employed"})
	}
	fake, config := fakeSmartHR(t, &smarthrfake.Options{Crews: crews})
	answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	if err != nil || answer.TotalCount != 250 || len(fake.Requests.All()) != 3 {
		t.Errorf("%v employees in %d requests: %v", answer, len(fake.Requests.All()), err)
	}
	// Without the header, a page that is not full is the last.
	fake.Faults.Add(fault.Fault{Header: http.Header{"X-Total-Count": {""}}})
	if answer, err = call[employeesAnswer](t, listEmployees, employeesQuery{Limit: 1000}, config,
		english); err != nil || answer.TotalCount != 250 {
		t.Errorf("without a total: %v, %v", answer, err)
	}
}

func TestSmartHRStatuses(t *testing.T) {
	t.Parallel()
	_, config := fakeSmartHR(t, nil)
	for status, want := range map[string]int{active: 2, onLeave: 1, retired: 1, "": 4} {
		answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{Status: status}, config, english)
		if err != nil || answer.TotalCount != want {
			t.Errorf("%q: %v, %v, want %d", status, answer, err, want)
		}
	}
}

func TestSmartHRTools(t *testing.T) {
	t.Parallel()
	fake, config := fakeSmartHR(t, nil)
	query := monthQuery{EmployeeID: "x", Month: "2026-05"}
	_, err := call[attendanceAnswer](t, listAttendance, query, config, english)
	wantError(t, err, "the API of SmartHR has no data for list_attendance", "Tools that work with it: list_employees")
	_, err = call[overtimeAnswer](t, calculateOvertime, overtimeQuery{monthQuery: query}, config, japanese)
	wantError(t, err, "SmartHRのAPIには calculate_overtime のためのデータがありません", "list_employees")
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{CompanyID: "1"}, config, english)
	wantError(t, err, "takes no company id")
	if n := len(fake.Requests.All()); n > 0 {
		t.Errorf("%d requests for what SmartHR does not have", n)
	}
}

func TestSmartHRErrors(t *testing.T) {
	t.Parallel()
	limits := func(remaining, reset, intensive, soon string) http.Header {
		return http.Header{"X-Rate-Limit-Remaining": {remaining}, "X-Rate-Limit-Reset": {reset},
			"X-Intensive-Rate-Limit-Remaining": {intensive}, "X-Intensive-Rate-Limit-Reset": {soon}}
	}
	for _, test := range []struct {
		name   string
		fault  fault.Fault
		en, ja string
	}{
		{"bad request", fault.Fault{Status: 400, Body: `{"code":1,"type":"bad_request","message":"不正"}`},
			"It says \"不正\"", "「不正」"},
		{"token", fault.Fault{Status: 401,
			Body: `{"code":2,"type":"unauthorized_token","message":"無効なアクセストークンです","errors":null}`},
			"renew the credential smarthr", "認証情報 smarthr"},
		{"forbidden", fault.Fault{Status: 403, Body: `{"code":3,"type":"forbidden","message":"x"}`},
			"may read employees", "参照権限"},
		{"not found", fault.Fault{Status: 404, Body: `{"code":4,"type":"not_found","message":"x"}`},
			"smarthr_subdomain", "smarthr_subdomain"},
		{"internal", fault.Fault{Status: 500, Body: `{"code":5,"type":"internal_server_error","message":"x"}`},
			"temporary failure", "一時的な障害"},
		{"long limit", fault.Fault{Status: 429, Body: `{"code":6,"type":"too_many_requests","message":"x"}`,
			Header: limits("0", "1200", "3", "5")}, "in 1200 seconds", "1200秒後"},
		{"short limit", fault.Fault{Status: 429, Header: limits("100", "1200", "0", "5")}, "in 5 seconds", "5秒後"},
		{"limit without headers", fault.Fault{Status: 429}, "Wait a few minutes", "数分待って"},
		{"maintenance", fault.Fault{Status: 503,
			Body: `{"code":9,"type":"service_maintenance","message":"メンテナンスを行っています"}`}, "under maintenance", "メンテナンス中"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeSmartHR(t, nil)
			fake.Faults.Add(test.fault)
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			wantError(t, err, test.en)
			_, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, japanese)
			wantError(t, err, test.ja)
		})
	}
}

func TestSmartHRFields(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		edit  func(map[string]any)
		check func(employee) bool
		err   string
	}{
		{"unknown status", func(c map[string]any) { c["emp_status"] = "seconded" },
			func(e employee) bool { return e.Status == unknown && *e.StatusRaw == "seconded" }, ""},
		{"unknown kind", func(c map[string]any) { member(c, "employment_type")["preset_type"] = "gig" },
			func(e employee) bool { return e.Type == unknown && *e.TypeRaw == "gig" }, ""},
		{"no kind", func(c map[string]any) { c["employment_type"] = nil },
			func(e employee) bool { return e.Type == unknown && e.TypeRaw == nil }, ""},
		{"no position", func(c map[string]any) { delete(c, "position") },
			func(e employee) bool { return e.Position == nil }, ""},
		{"no status", func(c map[string]any) { delete(c, "emp_status") }, nil, "lacks the field crews[0].emp_status"},
		{"no id", func(c map[string]any) { delete(c, "id") }, nil, "lacks the field crews[0].id"},
		{"no name", func(c map[string]any) {
			for _, name := range []string{"last_name", "first_name", "business_last_name", "business_first_name"} {
				c[name] = nil
			}
		}, nil, "lacks the field crews[0].last_name"},
		{"bad date", func(c map[string]any) { c["entered_at"] = "2015/04/01" }, nil,
			"crews[0].entered_at is not a date"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeSmartHR(t, nil)
			change(t, config, &fake.Faults, "/crews", func(a any) { test.edit(member(a, 0)) })
			answer, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			if test.err != "" {
				wantError(t, err, test.err)
				return
			}
			if err != nil || !test.check(answer.Employees[0]) {
				t.Errorf("got %v, %v", encode(t, answer), err)
			}
		})
	}
}

func TestSmartHRAddress(t *testing.T) {
	t.Parallel()
	for subdomain, want := range map[string]string{"": "needs the setting smarthr_subdomain", "a.b": "must be one label", "evil.example/": "must be one label", "-a": "must be one label", "A": "must be one label"} {
		config := defaultSettings()
		config.Vendor, config.SmartHRSubdomain = "smarthr", subdomain
		_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
		wantError(t, err, want)
	}
	s := &session{settings: settings{SmartHRSubdomain: "acme-1"}, lang: english}
	v, err := newSmartHR(s)
	if err != nil || v.(*smarthr).base != "https://acme-1.smarthr.jp/api/v1" {
		t.Errorf("base is %v, %v", v, err)
	}
}
