// Package jma is a fake of the files behind the website of the Japan Meteorological Agency that weather forecasts
// are read from. The forecasts are made up; the names and codes of places are JMA's (出典：気象庁ホームページ).
package jma

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
)

// Server is an http.Handler that serves the files of the newest issue below /bosai. The zero value is ready.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan
	// Now is the clock that says which issue is the newest. Nil means time.Now.
	Now func() time.Time
}

// ServeHTTP serves the files.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	file, ok := Files(newest(now()))[strings.TrimPrefix(r.URL.Path, "/bosai")]
	if !ok || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=60")
	_, _ = io.WriteString(w, file)
}

// newest is the time of the last regular issue before now: 05:00, 11:00 or 17:00 in Japan.
func newest(now time.Time) time.Time {
	day := midnight(now)
	for _, hour := range []time.Duration{17, 11, 5} {
		if at := day.Add(hour * time.Hour); !at.After(now) {
			return at
		}
	}
	return day.Add(-7 * time.Hour)
}

// Offices returns the codes of the forecast offices that have files.
func Offices() []string { return slices.Sorted(maps.Keys(offices())) }

// Places returns names of prefectures, regions and stations that have forecasts, in Japanese and English.
func Places() []string {
	var names []string
	for _, o := range offices() {
		names = append(names, o.names...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Files returns the files of an issue, by their path below /bosai: the table of areas, and of each office the forecast
// and the overview.
func Files(issued time.Time) map[string]string {
	files := map[string]string{"/common/const/area.json": Areas()}
	for code, o := range offices() {
		files["/forecast/data/forecast/"+code+".json"] = Forecast(code, issued)
		files["/forecast/data/overview_forecast/"+code+".json"] = fmt.Sprintf(
			`{"publishingOffice":%q,"reportDatetime":%q,"targetArea":"","headlineText":"見出し","text":"　高気圧に覆われて晴れています。\n\n　夜は曇りでしょう。"}`,
			o.publisher, stamp(issued))
		files["/forecast/data/overview_week/"+code+".json"] = fmt.Sprintf(
			`{"publishingOffice":"気象庁","reportDatetime":%q,"headTitle":"週間天気予報","text":"　向こう一週間は、天気は数日の周期で変わるでしょう。"}`,
			stamp(issued))
	}
	return files
}

// Forecast returns the forecast that one of Offices issues at a time.
func Forecast(office string, issued time.Time) string {
	return encode(offices()[office].issue(issued.In(jst)))
}

// areaTable is an excerpt of JMA's area.json.
//
//go:embed areas.txt
var areaTable string

// Areas returns the table of areas.
func Areas() string {
	type entry struct {
		Name     string   `json:"name"`
		EnName   string   `json:"enName"`
		Kana     string   `json:"kana,omitempty"`
		Parent   string   `json:"parent,omitempty"`
		Children []string `json:"children,omitempty"`
	}
	above := map[string]string{"class20s": "class15s", "class15s": "class10s", "class10s": "offices",
		"offices": "centers"}
	table := map[string]map[string]*entry{}
	for line := range strings.Lines(areaTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 6 {
			continue
		}
		if table[f[0]] == nil {
			table[f[0]] = map[string]*entry{}
		}
		table[f[0]][f[1]] = &entry{Name: f[2], EnName: f[3], Kana: f[4], Parent: f[5]}
		if parent := table[above[f[0]]][f[5]]; parent != nil {
			parent.Children = append(parent.Children, f[1])
		}
	}
	return encode(table)
}

// encode is for values that cannot fail.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}
