package main

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	httpbroker "github.com/hako-run/hako/host/broker/http"
	freeefake "github.com/hako-run/hako/internal/fakes/freee"
	kotfake "github.com/hako-run/hako/internal/fakes/kot"
	smarthrfake "github.com/hako-run/hako/internal/fakes/smarthr"
	"github.com/hako-run/hako/pdk/pdktest"
)

//go:generate go test -run ^TestRecordings$ . -update

// recordedAt is the time that guests see while the recordings are replayed.
var recordedAt = time.Date(2026, 6, 10, 12, 0, 0, 0, jst)

// recordedCalls are the calls that the recordings answer: every tool, of each vendor, for everybody in May 2026.
func recordedCalls(run func(config settings, employees []string)) {
	config := defaultSettings()
	run(config, []string{"101", "102", "103", "104", "105"})
	config.Vendor = "kot"
	run(config, []string{kotPerson, kotfake.Demo()[1].Key})
	config.Vendor, config.SmartHRSubdomain = "smarthr", "example"
	run(config, nil)
}

// callAll makes the calls of one vendor and returns the answers and errors.
func callAll(t *testing.T, config settings, employees []string) (answers []any) {
	t.Helper()
	ctx := pdktest.Context(t, pdktest.Options{Config: config, Locale: "ja"})
	add := func(answer any, err error) {
		if err != nil {
			answer = err.Error()
		}
		answers = append(answers, answer)
	}
	add(callAt(ctx, listEmployees, employeesQuery{}, recordedAt))
	for _, id := range employees {
		add(callAt(ctx, listAttendance, monthQuery{EmployeeID: id, Month: "2026-05"}, recordedAt))
		add(callAt(ctx, calculateOvertime, overtimeQuery{monthQuery: monthQuery{EmployeeID: id, Month: "2026-05"}}, recordedAt))
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

// TestRecordings holds that recordings.json is what this test makes up, and that every tool answers from it as it does from the stand-ins.
func TestRecordings(t *testing.T) {
	t.Parallel()
	recorder := &recorder{vendors: standIns()}
	server := httptest.NewServer(recorder)
	t.Cleanup(server.Close)
	var answers []any
	recordedCalls(func(config settings, employees []string) {
		answers = append(answers, callAll(t, redirected(config, server.URL), employees)...)
	})
	want := encode(t, httpbroker.Recordings{
		Note:      "Made up for this project in the format of the vendors' answers; the people, companies and hours do not exist.",
		Clock:     recordedAt,
		Exchanges: recorder.exchanges,
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
	var again []any
	recordedCalls(func(config settings, employees []string) {
		again = append(again, callAll(t, redirected(config, replay.URL), employees)...)
	})
	if encode(t, again) != encode(t, answers) {
		t.Error("the answers from the recordings differ from those of the stand-ins")
	}
	failed := slices.DeleteFunc(again, func(answer any) bool { _, failed := answer.(string); return !failed })
	if len(failed) != 2 || !strings.Contains(failed[0].(string), "HTTP 404") {
		t.Errorf("failures are %q, want those of the one who has left", failed)
	}
}

// standIns are the vendors by the names of their hosts. The company in freee pays in the same month, which keeps the recordings small.
func standIns() map[string]http.Handler {
	company := freeefake.Demo()[0]
	company.NextMonth = false
	clock := func() time.Time { return recordedAt }
	freee := freeefake.New(&freeefake.Options{Companies: []*freeefake.Company{company}, Now: clock})
	return map[string]http.Handler{
		"api.freee.co.jp":    authorized(freee, freee.Issue(0).Access),
		"api.kingtime.jp":    authorized(kotfake.New(&kotfake.Options{Now: clock}), "kot-token"),
		"example.smarthr.jp": authorized(smarthrfake.New(nil), "smarthr-token"),
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
	vendors   map[string]http.Handler
	exchanges []httpbroker.Exchange
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
		Request:  httpbroker.RecordedRequest{Method: r.Method, URL: url},
		Response: httpbroker.RecordedResponse{Status: answer.Code, Headers: httpbroker.RecordedHeader{}, Body: answer.Body.String()},
	}
	for _, name := range []string{"Content-Type", "X-Total-Count"} {
		if value := answer.Header().Get(name); value != "" {
			exchange.Response.Headers[name] = []string{value}
		}
	}
	if !slices.ContainsFunc(x.exchanges, func(e httpbroker.Exchange) bool { return e.Request == exchange.Request }) {
		x.exchanges = append(x.exchanges, exchange)
	}
	send(w, exchange.Response)
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
