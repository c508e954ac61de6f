package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	smarthrfake "github.com/hako-run/hako/dev/fakes/smarthr"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/pdk/pdktest"
)

//go:generate go test -run ^TestRecordings$ . -update

// recordedAt is the time that guests see while the recordings are replayed.
var recordedAt = time.Date(2026, 6, 10, 12, 0, 0, 0, jst)

// recordedMonths are the months that the recordings cover; the last one runs.
var recordedMonths = func() (months []month) {
	for n := -11; n <= 0; n++ {
		months = append(months, monthOf(recordedAt).add(n))
	}
	return months
}()

// recordedVendors are the vendors with their people, those who have left included.
func recordedVendors(run func(config settings, employees []string)) {
	config := defaultSettings()
	run(config, []string{"101", "102", "103", "104", "105"})
	config.Vendor = "kot"
	people := kotfake.Demo()
	run(config, []string{people[0].Key, people[1].Key, people[2].Key})
	config.Vendor, config.SmartHRSubdomain = "smarthr", "example"
	run(config, nil)
}

// recordedAnswer is a call's answer or error.
type recordedAnswer struct {
	name   string
	answer any
	err    error
}

// callAll makes the calls that the recordings answer: every tool of a vendor, for everybody, for each person and for
// each month.
func callAll(t *testing.T, config settings, employees []string) (answers []recordedAnswer) {
	t.Helper()
	ctx := pdktest.Context(t, pdktest.Options{Config: config, Locale: "ja"})
	add := func(name string, answer any, err error) {
		answers = append(answers, recordedAnswer{config.Vendor + " " + name, answer, err})
	}
	list, err := callAt(ctx, listEmployees, employeesQuery{}, recordedAt)
	add("employees", list, err)
	if employees == nil {
		return answers
	}
	for _, m := range recordedMonths {
		everybody := monthQuery{Month: m.String()}
		answer, err := callAt(ctx, calculateOvertime, overtimeQuery{monthQuery: everybody}, recordedAt)
		add(m.String(), answer, err)
		answer, err = callAt(ctx, listAttendance, everybody, recordedAt)
		add(m.String(), answer, err)
		for _, id := range employees {
			query := monthQuery{EmployeeID: id, Month: m.String()}
			answer, err := callAt(ctx, listAttendance, query, recordedAt)
			add(id+" "+m.String(), answer, err)
			answer, err = callAt(ctx, calculateOvertime, overtimeQuery{monthQuery: query}, recordedAt)
			add(id+" "+m.String(), answer, err)
		}
	}
	return answers
}

// redirected has the vendors at another server, each under its own host's name.
func redirected(config settings, server string) settings {
	config.FreeeURL = strings.Replace(config.FreeeURL, "https:/", server, 1)
	config.KOTURL = strings.Replace(config.KOTURL, "https:/", server, 1)
	config.SmartHRURL = server + "/" + config.SmartHRSubdomain + ".smarthr.jp/api/v1"
	return config
}

// TestRecordings checks that recordings.json is what this test makes up, and that every tool answers from it as it does
// from the fakes.
func TestRecordings(t *testing.T) {
	t.Parallel()
	recorder := &recorder{vendors: fakeVendors()}
	server := httptest.NewServer(recorder)
	t.Cleanup(server.Close)
	var answers []recordedAnswer
	recordedVendors(func(config settings, employees []string) {
		answers = append(answers, callAll(t, redirected(config, server.URL), employees)...)
	})
	want := encode(t, httpbroker.Recordings{
		Note: fmt.Sprintf("The months %s to %s, of people, companies and hours that were made up for this project in the format of the vendors' answers.",
			recordedMonths[0], recordedMonths[len(recordedMonths)-1]),
		Clock:     recordedAt,
		Exchanges: recorder.recorded(),
	})
	if *update {
		if err := os.WriteFile("recordings.json", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile("recordings.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))); got != want {
		t.Fatal("recordings.json is not what the test makes up: go generate rewrites it")
	}
	recordings, err := httpbroker.ParseRecordings(data)
	if err != nil {
		t.Fatal(err)
	}
	replay := httptest.NewServer(replayer(recordings))
	t.Cleanup(replay.Close)
	var again []recordedAnswer
	recordedVendors(func(config settings, employees []string) {
		again = append(again, callAll(t, redirected(config, replay.URL), employees)...)
	})
	for i, first := range answers {
		if encode(t, again[i].answer) != encode(t, first.answer) || fmt.Sprint(again[i].err) != fmt.Sprint(first.err) {
			t.Errorf("%s: the answer from the recordings differs from that of the fake", first.name)
		}
		if first.err != nil && !isPersonal(first.err) {
			t.Errorf("%s: %v", first.name, first.err)
		}
	}
	addUp(t, answers)
}

// addUp holds that the days of a person add up to the figures of the month, and the figures of the company are those of
// its people.
func addUp(t *testing.T, answers []recordedAnswer) {
	t.Helper()
	months, people := 0, map[string]overtime{}
	for i, a := range answers {
		days, ok := a.answer.(*attendanceAnswer)
		if !ok {
			continue
		}
		sums := answers[i+1].answer.(*overtimeAnswer)
		months++
		people[sums.Vendor+sums.EmployeeID+sums.Month] = *sums.overtime
		added := sumDays(days.Period, days.Records)
		if added.TotalWork != sums.TotalWork || added.TotalOvertime != sums.TotalOvertime ||
			added.WithinStatutory != sums.WithinStatutory ||
			added.WorkingDays != sums.WorkingDays || *added.PaidLeaveDays != *sums.PaidLeaveDays ||
			*added.Breakdown.LateNight != *sums.Breakdown.LateNight ||
			added.Breakdown.LegalHoliday != sums.Breakdown.LegalHoliday ||
			*added.Breakdown.PrescribedHoliday != *sums.Breakdown.PrescribedHoliday {
			t.Errorf("%s: the days add up to %s, and the month has %s", a.name, encode(t, added),
				encode(t, sums.totals))
		}
		if runs := sums.Month == recordedMonths[len(recordedMonths)-1].String(); sums.IsFinal && runs {
			t.Errorf("%s: the running month is final", a.name)
		}
	}
	for _, a := range answers {
		all, ok := a.answer.(*overtimePage)
		if !ok {
			continue
		}
		if len(all.Failed) > 0 || len(all.Employees) < 2 {
			t.Errorf("%s: %d people, failed %v", a.name, len(all.Employees), all.Failed)
		}
		for _, e := range all.Employees {
			if one := people[all.Vendor+e.EmployeeID+all.Month]; encode(t, one.totals) != encode(t, e.totals) {
				t.Errorf("%s: %s has other figures alone", a.name, e.Name)
			}
		}
	}
	if want := (3*12 + 9 + 3) + (2*12 + 9); months != want {
		t.Errorf("%d months of people add up, want %d", months, want)
	}
}

// fakeVendors are the vendors by the names of their hosts. The company in freee pays in the same month, which keeps the
// recordings small.
func fakeVendors() map[string]http.Handler {
	company := freeefake.Demo()[0]
	company.NextMonth = false
	for i, e := range company.Employees {
		workedDays(i, e.Hired, e.Retired, func(day date, out string) {
			if e.Days == nil {
				e.Days = map[string]freeefake.Day{}
			}
			if strings.HasPrefix(string(day), "2026-05") && len(e.Days) > 0 && i < 3 {
				return // this month has something of everything already
			}
			e.Days[string(day)] = freeefake.Day{Work: []freeefake.Span{{In: "09:00", Out: out}},
				Breaks: []freeefake.Span{{In: "12:00", Out: "13:00"}}}
			if out == "" {
				e.Days[string(day)] = freeefake.Day{Paid: []freeefake.PaidLeave{{Type: "full", Mins: 480, Days: 1}}}
			}
		})
	}
	people := kotfake.Demo()
	for i, e := range people {
		if e.Days == nil {
			e.Days = map[string]kotfake.Day{}
		}
		workedDays(i, e.Hired, e.Resigned, func(day date, out string) {
			switch _, there := e.Days[string(day)]; {
			case there || i == 0 && strings.HasPrefix(string(day), "2026-05"):
			case out == "":
				e.Days[string(day)] = kotfake.Day{Full: "有休"}
			default:
				e.Days[string(day)] = kotfake.Day{In: "09:00", Out: out, Break: 60}
			}
		})
	}
	clock := func() time.Time { return recordedAt }
	freee := freeefake.New(&freeefake.Options{Companies: []*freeefake.Company{company}, Now: clock})
	return map[string]http.Handler{
		"api.freee.co.jp":    authorized(freee, freee.Issue(0).Access),
		"api.kingtime.jp":    authorized(kotfake.New(&kotfake.Options{Employees: people, Now: clock}), "kot-token"),
		"example.smarthr.jp": authorized(smarthrfake.New(nil), "smarthr-token"),
	}
}

// workedDays makes up the weekdays of a person in the months of the recordings: when work ends on a day, and "" for a
// day of paid leave. The second one works more than 45 hours of overtime in December.
func workedDays(person int, hired, left string, each func(day date, out string)) {
	last := dateOf(recordedAt).add(-1)
	for day := recordedMonths[0].days().Start; day <= last; day = day.add(1) {
		at := day.midnight()
		if weekday := at.Weekday(); weekday == time.Saturday || weekday == time.Sunday || string(day) < hired ||
			left != "" && string(day) > left {
			continue
		}
		switch n := at.YearDay()*7 + person*13; {
		case at.Day() == 10+person:
			each(day, "")
		case person == 1 && at.Month() == time.December:
			each(day, "21:00")
		default:
			each(day, fmt.Sprintf("%02d:%02d", 18+n%3, n%4*15))
		}
	}
}

func authorized(vendor http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		vendor.ServeHTTP(w, r)
	})
}

// recorder serves several vendors under the names of their hosts, and keeps each exchange once.
type recorder struct {
	vendors map[string]http.Handler

	mu        sync.Mutex // guards what follows
	exchanges []httpbroker.Exchange
}

// recorded are the exchanges by their URLs: requests that are under way at once arrive in any order.
func (x *recorder) recorded() []httpbroker.Exchange {
	return slices.SortedFunc(slices.Values(x.exchanges),
		func(a, b httpbroker.Exchange) int { return strings.Compare(a.Request.URL, b.Request.URL) })
}

func (x *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	url := "https://" + host + "/" + path
	if r.URL.RawQuery != "" {
		url += "?" + r.URL.RawQuery
	}
	answer := httptest.NewRecorder()
	r.URL.Path = "/" + path
	r.Host = host
	x.vendors[host].ServeHTTP(answer, r)
	exchange := httpbroker.Exchange{
		Request: httpbroker.RecordedRequest{Method: r.Method, URL: url},
		Response: httpbroker.RecordedResponse{Status: answer.Code, Headers: httpbroker.RecordedHeader{},
			Body: small(answer.Body.Bytes())},
	}
	for _, name := range []string{"Content-Type", "X-Total-Count"} {
		if value := answer.Header().Get(name); value != "" {
			exchange.Response.Headers[name] = []string{value}
		}
	}
	x.mu.Lock()
	if !slices.ContainsFunc(x.exchanges, func(e httpbroker.Exchange) bool { return e.Request == exchange.Request }) {
		x.exchanges = append(x.exchanges, exchange)
	}
	x.mu.Unlock()
	send(w, exchange.Response)
}

// left out of the recordings are fields of days that no tool reads: there are thousands of days.
var leftOut = regexp.MustCompile(`"(is_editable|note|half_special_holiday_mins|hourly_special_holiday_mins|special_holiday_setting_id|normal_work_clock_in_at|` +
	`normal_work_clock_out_at|use_attendance_deduction|use_default_work_pattern|use_half_compensatory_holiday|total_latenight_excess_statutory_work_mins|` +
	`workPlaceDivisionCode|workPlaceDivisionName|isHelp|isClosing|autoBreakOff|discretionaryVacation|customDailyWorkings|latitude)":("[^"]*"|[^,{}"\[\]]+|\[\]),?`)

func small(body []byte) string {
	return strings.ReplaceAll(string(leftOut.ReplaceAll(body, nil)), ",}", "}")
}

func send(w http.ResponseWriter, r httpbroker.RecordedResponse) {
	maps.Copy(w.Header(), r.Headers)
	w.WriteHeader(r.Status)
	_, _ = w.Write([]byte(r.Body))
}

// replayer answers as the host does from recordings.
func replayer(recordings *httpbroker.Recordings) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, e := range recordings.Exchanges {
			if strings.TrimPrefix(e.Request.URL, "https:/") == r.URL.RequestURI() {
				send(w, e.Response)
				return
			}
		}
		http.Error(w, "no recording", http.StatusTeapot)
	})
}
