package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	smarthrfake "github.com/hako-run/hako/dev/fakes/smarthr"
	"github.com/hako-run/hako/pdk/pdktest"
)

// planted is in every name and value that the test adds to answers.
const planted = "密告-planted"

// plant adds to every object members that nobody knows, and members of those kinds that must never be shown.
func plant(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = plant(value[i])
		}
	case map[string]any:
		for name, member := range value {
			value[name] = plant(member)
		}
		for _, name := range []string{"bank_account", "basic_pay", "my_number", "base_pension_num", "birth_date", "birthDate", "address", "dependents", "salary", "note", "memo", planted} {
			value[name] = map[string]any{planted: planted, "number": planted}
		}
	}
	return value
}

// planting changes every answer of a vendor's.
func planting(t *testing.T, vendor http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		vendor.ServeHTTP(recorder, r)
		var answer any
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Error(err)
		}
		maps.Copy(w.Header(), recorder.Header())
		w.Header().Set("X-Planted", planted)
		w.WriteHeader(recorder.Code)
		if _, err := fmt.Fprint(w, encode(t, plant(answer))); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingElseIsShown feeds every tool of every vendor with answers full of what must not be shown (the fakes'
// own canaries for bank accounts, pay, pensions, dependants, birth dates and addresses, and more in every object), and
// searches all that comes out: results, errors and the log.
func TestNothingElseIsShown(t *testing.T) {
	// Not parallel: it reads the log of the process.
	var logged bytes.Buffer
	previous := log.Writer()
	log.SetOutput(&logged)
	defer log.SetOutput(previous)

	freeeServer := freeefake.New(&freeefake.Options{Companies: freeefake.Demo()})
	freeeServer2 := freeefake.New(nil)
	token, token2 := freeeServer.Issue(0).Access, freeeServer2.Issue(0).Access
	freeeServer2.Revoke()
	config := defaultSettings()
	config.FreeeURL = host(t, planting(t, freeeServer), func() string { return token }) + "/hr"
	config.CompanyID = "12345"
	refused := config
	refused.FreeeURL = host(t, planting(t, freeeServer2), func() string { return token2 }) + "/hr"
	several := config
	several.CompanyID = ""
	open := &kotfake.Options{Now: noonClock}
	kot := config
	kot.Vendor, kot.KOTURL = "kot", host(t, planting(t, kotfake.New(open)), func() string { return "kot-token" })+
		"/v1.0"
	closed := kot
	closed.KOTURL = host(t, planting(t, kotfake.New(open)), func() string { return "wrong" }) + "/v1.0"
	smarthr := config
	smarthr.Vendor, smarthr.SmartHRURL = "smarthr", host(t, planting(t, smarthrfake.New(nil)),
		func() string { return "smarthr-token" })+"/api/v1"

	out := 0
	for _, c := range []settings{config, refused, several, kot, closed, smarthr} {
		for _, tool := range []string{"list_employees", "list_attendance", "calculate_overtime"} {
			arguments := map[string]any{"employee_id": "102", "month": "2026-05"}
			if c.Vendor == "kot" {
				arguments["employee_id"] = kotPerson
			}
			if tool == "list_employees" {
				arguments = map[string]any{}
			}
			response := pdktest.CallTool(t, tool, arguments, pdktest.Options{Config: c})
			text := encode(t, response)
			for _, canary := range []string{planted, freeefake.Canary, kotfake.Canary, smarthrfake.Canary, fmt.Sprint(freeefake.CanaryNumber), freeefake.CanaryDate} {
				if strings.Contains(text, canary) {
					t.Errorf("%s of %s shows %s: %.2000s", tool, c.Vendor, canary, text)
				}
			}
			if !response.IsError {
				out++
			}
		}
	}
	if out != 7 {
		t.Errorf("%d answers, want those of three tools of freee and KING OF TIME, and of one of SmartHR", out)
	}
	if logged.Len() > 0 {
		t.Errorf("log: %s", logged.String())
	}
}

// TestFaultsDoNotQuote checks that the error for a value of the wrong kind names the field and not the value.
func TestFaultsDoNotQuote(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"id", "display_name", "entry_date", "retire_date", "num"} {
		for _, value := range []any{planted, []any{planted}, map[string]any{"x": planted}} {
			fake, config := fakeFreee(t, crowd(1))
			change(t, config, &fake.Faults, "/api/v1/companies/12345/employees",
				func(a any) { member(a, 0)[name] = value })
			_, err := call[employeesAnswer](t, listEmployees, employeesQuery{}, config, english)
			if err != nil && strings.Contains(err.Error(), planted) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
