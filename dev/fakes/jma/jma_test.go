package jma

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
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

// TestOffices checks that all offices of JMA have a forecast, that no two are alike, and that the figures could be true
// at any time of the year.
func TestOffices(t *testing.T) {
	t.Parallel()
	if n := len(Offices()); n != 56 {
		t.Fatalf("%d offices", n)
	}
	for month := range 12 {
		for _, hour := range []int{5, 11, 17} {
			alike := map[string]string{}
			for _, code := range Offices() {
				var file []bulletin
				if err := json.Unmarshal([]byte(Forecast(code,
					time.Date(2026, time.Month(month+1), 15, hour, 0, 0, 0, jst))), &file); err != nil {
					t.Fatal(err)
				}
				short, week := file[0].Series, file[1].Series
				figures := fmt.Sprint(short[0].Areas[0].Codes, short[1].Areas[0].Pops, short[2].Areas[0].Temps,
					week[0].Areas[0].Codes, week[1].Areas[0].Max)
				if other := alike[figures]; other != "" {
					t.Errorf("month %d, %d:00: the figures of %s and %s are the same", month+1, hour, other, code)
				}
				alike[figures] = code
				tomorrow := short[2].Areas[0].Temps[len(short[2].Areas[0].Temps)-2:]
				checkPlausible(t, code, tomorrow[0], tomorrow[1])
				for _, values := range week[1].Areas {
					for d := 1; d < len(values.Min); d++ {
						checkPlausible(t, code, values.Min[d], values.Max[d])
					}
				}
				if snows := strings.Contains(fmt.Sprint(short[0].Areas, week[0].Areas), " 400 "); snows &&
					(month >= 4 && month <= 9 || code > "460000") {
					t.Errorf("month %d: snow in %s", month+1, code)
				}
			}
		}
	}
}

func checkPlausible(t *testing.T, office, low, high string) {
	t.Helper()
	lowest, _ := strconv.Atoi(low)
	highest, err := strconv.Atoi(high)
	if err != nil || lowest >= highest || lowest < -25 || highest > 40 || office > "470000" && lowest < 5 {
		t.Errorf("office %s: low %s, high %s", office, low, high)
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
