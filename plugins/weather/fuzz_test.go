package main

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/dev/fakes/jma"
)

// FuzzForecast reads any bytes as a forecast file and writes every answer from it: no crash, no minimum for the day of
// the report, and text that is valid UTF-8.
func FuzzForecast(f *testing.F) {
	for _, hour := range []time.Duration{5, 11, 17} {
		f.Add([]byte(jma.Forecast("130000", moment(f, "2026-04-15 00:00").Add(hour*time.Hour))), int64(hour))
	}
	f.Add([]byte(`[{"reportDatetime":"2026-04-15T11:00:00+09:00","timeSeries":[{"timeDefines":["2026-04-15T11:00:00+09:00"],"areas":[{"weatherCodes":[""]}]}]}]`), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, hours int64) {
		file, err := parseForecast(data)
		if err != nil {
			return
		}
		reported := file.short.reported()
		for _, lang := range []language{japanese, english} {
			for _, date := range []string{today, tomorrow, week} {
				r := reporter{lang: lang, now: reported.Add(time.Duration(hours%1000) * time.Hour).In(jst), file: file,
					at: located{place: place{name: "東京都", office: "130000", class10: "130010"}}}
				rep, err := r.answer(t.Context(), client{lang: lang}, date)
				if err != nil {
					continue
				}
				if !utf8.ValidString(r.text(rep)) {
					t.Error("the text is not UTF-8")
				}
				if _, err := json.Marshal(rep); err != nil {
					t.Error(err)
				}
			}
		}
		for _, d := range file.days(places{area: "130010", station: "44132"}) {
			if d.date.Equal(midnight(reported)) && d.low != nil {
				t.Error("a minimum for the day of the report")
			}
		}
	})
}

// FuzzAreas checks that the reader of area.json agrees with encoding/json, except in how many U+FFFD stand for bytes
// that are not UTF-8.
func FuzzAreas(f *testing.F) {
	f.Add([]byte(jma.Areas()))
	f.Add([]byte(`{"class10s":{"1":{"name":"\u3042\"","x":[{"name":"y"},-1.5e3,true,null,"\\"]}}, "class20s" : { "2" : {"parent":null,"name":"z"} },"note":{}}`))
	f.Add([]byte(`[1,{"a":"}"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseAreas(data)
		if err != nil {
			return
		}
		var levels map[string]map[string]map[string]any
		if json.Unmarshal(data, &levels) != nil { // something is no object
			return
		}
		for level, entries := range map[string][]area{"class10s": got.class10s, "class20s": got.class20s} {
			names := map[string]string{}
			for _, entry := range entries {
				names[entry.code] = entry.name
			}
			if len(names) != len(levels[level]) && utf8.Valid(data) {
				t.Errorf("%s: %d entries, want %d", level, len(names), len(levels[level]))
			}
			for code, entry := range levels[level] {
				if name, ok := entry["name"].(string); ok && names[code] != name && utf8.Valid(data) {
					t.Errorf("%s %s: name %q, want %q", level, code, names[code], name)
				}
			}
		}
		newAtlas(got).find("東京", anywhere)
	})
}

// FuzzFind looks up any text.
func FuzzFind(f *testing.F) {
	for _, location := range []string{"東京", "広島県府中市", "Fuchu, Hiroshima", "ﾖｺﾊﾏ", "群馬県吾妻郡草津町", "-shi", "é", "()", "島", "\u3099", "郡"} {
		f.Add(location)
	}
	all := testAtlas(f)
	f.Fuzz(func(t *testing.T, location string) {
		abroad(location)
		if m := all.find(location, anywhere); len(m.places) > 0 {
			m.decide(english, location)
			return
		}
		all.nearest(location)
	})
}
