package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

func levels(findings []Finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, f.Level+" "+f.Message)
	}
	return strings.Join(lines, "\n")
}

func TestDiagnosed(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Hour)
	found := diagnosed(&server.Diagnosis{
		Version: "1.2.3", Plugins: map[string]string{"b": "broken", "a": "pending"},
		Upstreams: map[string]inspect.UpstreamState{"github": {State: mcpclient.Down, Since: since}, "idle": {State: mcpclient.Idle},
			"slow": {State: mcpclient.Connecting, Since: since}, "new": {State: mcpclient.Connecting, Since: time.Now()}},
		Status: []string{"the policy file is invalid"}, StoreMS: 250,
	}, "1.2.4")
	want := `warning hako 1.2.3 runs, and this program is 1.2.4
warning plugin b is not in service: broken
error upstream server github is down since ` + moment(since) + `
warning upstream server slow is being connected since ` + moment(since) + `
warning the policy file is invalid
warning the store answers in 250ms, and a call asks several times`
	if got := levels(found); got != want {
		t.Errorf("found\n%s", got)
	}
	for _, f := range found {
		if f.Remedy == "" {
			t.Errorf("%s: no remedy", f.Message)
		}
	}
	if got := levels(diagnosed(&server.Diagnosis{Version: "1", StoreMS: -1}, "1")); got != "ok hako 1 runs\nerror the store does not respond" {
		t.Errorf("found\n%s", got)
	}
}

func TestCertificateEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		-time.Hour: LevelError, 13 * 24 * time.Hour: LevelWarning, 90 * 24 * time.Hour: LevelOK,
	} {
		if got := certificate(now.Add(left), now); got.Level != want {
			t.Errorf("%v: %+v", left, got)
		}
	}
}

// TestRunning: whatever is at the address, doctor says what it is.
func TestRunning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, want string }{
		"hako":             {`{"version":"1","plugins":{},"upstreams":{},"status":[],"storeMs":0.2}`, "ok hako 1 runs"},
		"another program":  {"<html>", "warning what runs at"},
		"too much":         {`{"version":"` + strings.Repeat("x", maxDiagnosis) + `"}`, "warning what runs at"},
		"nothing any more": {"", "ok hako serve does not run at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, test.body) }))
			defer s.Close()
			if test.body == "" {
				s.Close()
			}
			c := &config.Config{HTTP: config.HTTP{Address: strings.TrimPrefix(s.URL, "http://")}}
			if got := levels(Running(t.Context(), c, "1")); !strings.HasPrefix(got, test.want) {
				t.Errorf("found\n%.300s", got)
			}
		})
	}
}
