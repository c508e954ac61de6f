package main

import (
	"net/http"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	freeefake "github.com/hako-run/hako/dev/fakes/freee"
)

// TestFreeeErrors checks that every documented refusal comes with freee's own words, a remedy and the id of the request.
func TestFreeeErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   []string
		ja     string
	}{
		{"bad request", 400, `{"status_code":400,"errors":[{"type":"bad_request","messages":["リクエストの形式が不正です。"]}]}`,
			[]string{"HTTP 400", "リクエストの形式が不正です。", "Check the arguments", "(X-Request-Id: req-1)"}, "引数を確認"},
		{"login", 401, `{"message":"ログインをしてください。"}`, []string{"HTTP 401", "ログインをしてください。", "renew the credential freee"},
			"認証情報 freee を更新"},
		{"expired after a refresh", 401, `{"message":"アクセスする権限がありません","code":"expired_access_token"}`,
			[]string{"HTTP 401", "renew the credential freee"}, "認証情報 freee を更新"},
		{"expired as 403", 403, `{"error":"access_denied","message":"アクセスする権限がありません","code":"expired_access_token"}`,
			[]string{"HTTP 403", "renew the credential freee"}, "認証情報 freee を更新"},
		{"authorize again", 403, `{"message":"再認可が必要です","code":"re_authorization_required"}`,
			[]string{"renew the credential freee"}, "認証情報 freee を更新"},
		{"no permission", 403, `{"message":"x","code":"user_do_not_have_permission"}`, []string{"ask an administrator"},
			"権限を確認"},
		{"company", 403, `{"message":"x","code":"company_not_found"}`, []string{"Check company_id"}, "company_id を確認"},
		{"plan", 403, `{"message":"x","code":"freee_plan_limit"}`, []string{"plan at freee does not include"}, "契約プラン"},
		{"address", 403, `{"message":"x","code":"source_ip_address_limit"}`, []string{"allow this server's address"},
			"IPアドレス"},
		{"unknown code", 403, `{"message":"x","code":"something_new"}`, []string{"HTTP 403", "company_admin"},
			"company_admin"},
		{"forbidden", 403, `{"status_code":403,"errors":[{"type":"forbidden","messages":["アクセス権限がありません。"]}]}`,
			[]string{"アクセス権限がありません。", "company_admin", "wait about 10 minutes", "role: company_admin"}, "10分ほど"},
		{"abuse control", 403, `<html>Forbidden</html>`, []string{"too many", "wait about 10 minutes"}, "10分ほど"},
		{"not found", 404, `{"status_code":404,"errors":[{"type":"not_found","messages":["なし"]}]}`,
			[]string{"HTTP 404", "Check the id"}, "確認してください"},
		{"too many", 429, `{"message":"too many"}`, []string{"HTTP 429", "Try again in 3600 seconds"}, "3600秒後"},
		{"server error", 500, `{"status_code":500,"errors":[{"type":"internal_server_error","messages":["エラーが発生しました。"]}]}`, []string{"HTTP 500", "エラーが発生しました。", "Try again later"}, "時間をおいて"},
		{"unavailable", 503, ``, []string{"HTTP 503", "maintenance"}, "メンテナンス"},
		{"gateway", 502, `<html>`, []string{"HTTP 502"}, "HTTP 502"},
		{"redirect to nowhere", 304, ``, []string{"HTTP 304"}, "HTTP 304"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for lang, want := range map[language][]string{english: test.want, japanese: {test.ja}} {
				fake, config := fakeFreee(t, nil)
				fake.Faults.Add(fault.Fault{Path: "/hr/api/v1/companies/**", Status: test.status, Body: test.body,
					Header: http.Header{"X-Request-Id": {"req-1"},
						"X-RateLimit-Reset": {"2026-11-20T04:00:00.000000Z"}}})
				_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, lang)
				wantError(t, err, want...)
			}
		})
	}
}

func TestTooManyWithoutReset(t *testing.T) {
	t.Parallel()
	fake, config := fakeFreee(t, nil)
	fake.Faults.Add(fault.Fault{Status: 429, Header: http.Header{"X-RateLimit-Reset": {"soon"}}})
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "Wait up to an hour")
}

// TestBrokenAnswers checks that an answer that is cut off, no JSON or of another shape is an error.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault fault.Fault
		want  string
	}{
		"dropped":       {fault.Fault{Drop: true}, "could not read /api/v1/companies/12345/employees from freee"},
		"cut off":       {fault.Fault{Truncate: true}, "could not read"},
		"empty":         {fault.Fault{Body: " "}, "employees is not an array"},
		"HTML":          {fault.Fault{Body: "<html>"}, "employees is not an array"},
		"an object":     {fault.Fault{Body: `{"employees":[]}`}, "employees is not an array"},
		"null":          {fault.Fault{Body: `null`}, "employees is not an array"},
		"another array": {fault.Fault{Body: `[1]`}, "employees[0] is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, config := fakeFreee(t, nil)
			fake.Faults.Add(test.fault)
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			wantError(t, err, test.want)
		})
	}
}

// TestRoles checks that a refusal says what the connected user may do.
func TestRoles(t *testing.T) {
	t.Parallel()
	as := func(role string) func(*freeefake.Options) {
		return func(o *freeefake.Options) { o.Companies[0].Role = role }
	}
	_, config := fakeFreee(t, as("self_only"))
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "self_only", "employee_id 101")
	own := monthQuery{EmployeeID: "101", Month: "2026-05"}
	if _, err := call[attendanceAnswer](t, listAttendance, own, config, english); err != nil {
		t.Errorf("own attendance: %v", err)
	}
	_, err = call[attendanceAnswer](t, listAttendance, monthQuery{EmployeeID: "102", Month: "2026-05"}, config,
		japanese)
	wantError(t, err, "self_only", "employee_id 101")
	_, config = fakeFreee(t, as("custom-42"))
	_, err = call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, "role: custom-42")
	_, err = call[attendanceAnswer](t, listAttendance,
		monthQuery{CompanyID: "999", EmployeeID: "102", Month: "2026-05"}, config, english)
	wantError(t, err, "Check company_id", "12345 架空商事株式会社")
}

func TestVendorSettings(t *testing.T) {
	t.Parallel()
	config := defaultSettings()
	config.Vendor = "sap"
	_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
	wantError(t, err, `vendor is "sap"`, "freee, kot, smarthr")
}
