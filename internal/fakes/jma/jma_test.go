package jma

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"
)

func TestNewestIssue(t *testing.T) {
	t.Parallel()
	for now, want := range map[string]string{
		"2026-04-15T04:59:59+09:00": "2026-04-14T17:00:00+09:00",
		"2026-04-15T05:00:00+09:00": "2026-04-15T05:00:00+09:00",
		"2026-04-15T12:00:00+09:00": "2026-04-15T11:00:00+09:00",
		"2026-04-14T23:00:00Z":      "2026-04-15T05:00:00+09:00",
		"2026-04-15T23:59:59+09:00": "2026-04-15T17:00:00+09:00",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := stamp(newest(at)); got != want {
			t.Errorf("at %s the newest issue is %s, want %s", now, got, want)
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := &Server{Now: func() time.Time { return time.Date(2026, 4, 15, 12, 0, 0, 0, jst) }}
	for path, status := range map[string]int{
		"/bosai/common/const/area.json":                         200,
		"/bosai/forecast/data/forecast/130000.json":             200,
		"/bosai/forecast/data/overview_week/130000.json":        200,
		"/bosai/forecast/data/forecast/014030.json":             404, // an area without a file, as with JMA
		"/bosai/forecast/data/forecast/../../../../etc/passwd":  404,
		"/bosai/forecast/data/overview_forecast/130000.json/..": 404,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != status || status == 200 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
}
