package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	smarthrfake "github.com/hako-run/hako/dev/fakes/smarthr"
	"github.com/hako-run/hako/pdk/pdktest"
)

var update = flag.Bool("update", false, "rewrite the golden files and the recordings")

// noon is the time of the tests, long after the made-up May 2026 and outside the hours in which KING OF TIME is closed.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, jst)

// host stands for the host in front of a vendor: it adds the credential. A guest that sends one of its own, or anything
// but GET, fails the test.
func host(t testing.TB, vendor http.Handler, token func() string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
			t.Errorf("the guest sent %s with Authorization %q", r.Method, r.Header.Get("Authorization"))
		}
		r.Header.Set("Authorization", "Bearer "+token())
		vendor.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func noonClock() time.Time { return noon }

// fakeFreee is a fake of freee with its settings. The change of its options may be nil.
func fakeFreee(t testing.TB, change func(*freeefake.Options)) (*freeefake.Server, settings) {
	t.Helper()
	options := &freeefake.Options{Companies: freeefake.Demo(), Now: noonClock}
	if change != nil {
		change(options)
	}
	fake := freeefake.New(options)
	token := fake.Issue(0).Access
	config := defaultSettings()
	config.FreeeURL = host(t, fake, func() string { return token }) + "/hr/"
	config.CompanyID = "12345"
	return fake, config
}

// fakeKOT is a fake of KING OF TIME with its settings.
func fakeKOT(t testing.TB, change func(*kotfake.Options)) (*kotfake.Server, settings) {
	t.Helper()
	options := &kotfake.Options{Now: noonClock}
	if change != nil {
		change(options)
	}
	fake := kotfake.New(options)
	config := defaultSettings()
	config.Vendor, config.KOTURL = "kot", host(t, fake, func() string { return "kot-token" })+"/v1.0"
	config.KOTEmploymentTypes = []string{"正社員=full_time", "パートタイマー = part_time"}
	return fake, config
}

// fakeSmartHR is a fake of SmartHR with its settings.
func fakeSmartHR(t testing.TB, options *smarthrfake.Options) (*smarthrfake.Server, settings) {
	t.Helper()
	fake := smarthrfake.New(options)
	config := defaultSettings()
	config.Vendor, config.SmartHRURL = "smarthr", host(t, fake, func() string { return "smarthr-token" })+"/api/v1/"
	return fake, config
}

// call runs a tool in a language at noon and returns its answer, which is a *T.
func call[T, In any](t testing.TB, run tool[In], in In, config settings, lang language) (*T, error) {
	t.Helper()
	out, err := callAny(t, run, in, config, lang)
	if err != nil {
		return nil, err
	}
	return out.(*T), nil
}

func callAny[In any](t testing.TB, run tool[In], in In, config settings, lang language) (any, error) {
	t.Helper()
	ctx := pdktest.Context(t, pdktest.Options{Config: config, Locale: string(lang)})
	return callAt(ctx, run, in, noon)
}

func callAt[In any](ctx context.Context, run tool[In], in In, now time.Time) (any, error) {
	s, err := newSession(ctx, now)
	if err != nil {
		return nil, err
	}
	return run(ctx, s, in)
}

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// change plans an answer of a fake's, changed: what the request gets now, decoded, goes through edit. Requests to
// the path get it from then on.
func change(t testing.TB, config settings, plan *fault.Plan, target string, edit func(answer any)) {
	t.Helper()
	base := map[string]string{"freee": strings.TrimSuffix(config.FreeeURL, "/"), "kot": config.KOTURL,
		"smarthr": strings.TrimSuffix(config.SmartHRURL, "/")}[config.Vendor]
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := web.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", target, response.StatusCode, err)
	}
	edit(answer)
	plan.Add(fault.Fault{Path: request.URL.Path, Body: encode(t, answer)})
}

func encode(t testing.TB, value any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// member walks into decoded JSON by names and indexes.
func member(value any, path ...any) map[string]any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value.(map[string]any)
}

// wantError holds that an error has all of the texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error is %q, want %q in it", err, text)
		}
	}
}

// lines is an answer as JSON, with a line for each day.
func lines(t *testing.T, answer any) string {
	t.Helper()
	a, ok := answer.(*attendanceAnswer)
	if !ok {
		return encode(t, answer)
	}
	head := *a.attendance
	head.Records = nil
	var b strings.Builder
	b.WriteString(encode(t, attendanceAnswer{a.header, &head}))
	for _, r := range a.Records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// golden compares an answer with a file.
func golden(t *testing.T, name string, answer any) {
	t.Helper()
	path := filepath.Join("testdata", "answers", name+".json")
	got := lines(t, answer)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with go test -update)", err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", path, got)
	}
}
