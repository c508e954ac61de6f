package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	freeefake "github.com/hako-run/hako/internal/fakes/freee"
	kotfake "github.com/hako-run/hako/internal/fakes/kot"
	smarthrfake "github.com/hako-run/hako/internal/fakes/smarthr"
	"github.com/hako-run/hako/pdk/pdktest"
)

// noon is the time of the tests, long after the made-up May 2026 and outside the hours in which KING OF TIME is closed.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, jst)

// host stands for the host in front of a vendor: it adds the credential. A guest that sends one of its own, or anything but GET, fails
// the test.
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

// newFreee is a stand-in for freee with its settings. Changes to the options may be nil.
func fakeFreee(t testing.TB, change func(*freeefake.Options)) (*freeefake.Server, settings) {
	t.Helper()
	options := &freeefake.Options{Companies: freeefake.Demo(), Now: func() time.Time { return noon }}
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

// fakeKOT is a stand-in for KING OF TIME with its settings.
func fakeKOT(t testing.TB, change func(*kotfake.Options)) (*kotfake.Server, settings) {
	t.Helper()
	options := &kotfake.Options{Now: func() time.Time { return noon }}
	if change != nil {
		change(options)
	}
	fake := kotfake.New(options)
	config := defaultSettings()
	config.Vendor, config.KOTURL = "kot", host(t, fake, func() string { return "kot-token" })+"/v1.0"
	config.KOTEmploymentTypes = []string{"正社員=full_time", "パートタイマー = part_time"}
	return fake, config
}

// fakeSmartHR is a stand-in for SmartHR with its settings.
func fakeSmartHR(t testing.TB, options *smarthrfake.Options) (*smarthrfake.Server, settings) {
	t.Helper()
	fake := smarthrfake.New(options)
	config := defaultSettings()
	config.Vendor, config.SmartHRURL = "smarthr", host(t, fake, func() string { return "smarthr-token" })+"/api/v1/"
	return fake, config
}

// call runs a tool in Japanese or English and returns its answer as a T.
func call[T, In any](t testing.TB, run tool[In], in In, config settings, lang language) (*T, error) {
	t.Helper()
	ctx := pdktest.Context(t, pdktest.Options{Config: config, Locale: string(lang)})
	return callAt[T](ctx, t, run, in, noon)
}

func callAt[T, In any](ctx context.Context, t testing.TB, run tool[In], in In, now time.Time) (*T, error) {
	t.Helper()
	s, err := newSession(ctx, now)
	if err != nil {
		return nil, err
	}
	out, err := run(ctx, s, in)
	if err != nil {
		return nil, err
	}
	return out.(*T), nil
}
