package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The forecasts in this file are made up: the shapes, names and codes are JMA's, the values are not.

// madeUpOffice is the layout of an office's file.
type madeUpOffice struct {
	code, publisher string
	areas           []areaName
	stations        []areaName
	weekAreas       []areaName
	weekStations    []areaName
	inland          bool
}

var madeUpOffices = map[string]madeUpOffice{
	"130000": {
		code: "130000", publisher: "気象庁",
		areas:        []areaName{{"東京地方", "130010"}, {"伊豆諸島北部", "130020"}, {"伊豆諸島南部", "130030"}, {"小笠原諸島", "130040"}},
		stations:     []areaName{{"東京", "44132"}, {"大島", "44172"}, {"八丈島", "44263"}, {"父島", "44301"}},
		weekAreas:    []areaName{{"東京地方", "130010"}, {"伊豆諸島", "130100"}, {"小笠原諸島", "130040"}},
		weekStations: []areaName{{"東京", "44132"}, {"八丈島", "44263"}, {"父島", "44301"}},
	},
	"270000": {
		code: "270000", publisher: "大阪管区気象台",
		areas: []areaName{{"大阪府", "270000"}}, stations: []areaName{{"大阪", "62078"}},
		weekAreas: []areaName{{"大阪府", "270000"}}, weekStations: []areaName{{"大阪", "62078"}},
	},
	"016000": {
		code: "016000", publisher: "札幌管区気象台",
		areas:     []areaName{{"石狩地方", "016010"}, {"空知地方", "016020"}, {"後志地方", "016030"}},
		stations:  []areaName{{"札幌", "14163"}, {"岩見沢", "15356"}, {"倶知安", "16217"}},
		weekAreas: []areaName{{"石狩・空知・後志地方", "016000"}}, weekStations: []areaName{{"札幌", "14163"}},
	},
	"471000": {
		code: "471000", publisher: "沖縄気象台",
		areas:     []areaName{{"本島中南部", "471010"}, {"本島北部", "471020"}, {"久米島", "471030"}},
		stations:  []areaName{{"那覇", "91197"}, {"名護", "91107"}, {"久米島", "91146"}},
		weekAreas: []areaName{{"沖縄本島地方", "471000"}}, weekStations: []areaName{{"那覇", "91197"}},
	},
	// Not in the order of the codes, and with the area of an office that has no file.
	"014100": {
		code: "014100", publisher: "釧路地方気象台",
		areas:     []areaName{{"釧路地方", "014020"}, {"根室地方", "014010"}, {"十勝地方", "014030"}},
		stations:  []areaName{{"釧路", "19432"}, {"根室", "18273"}, {"帯広", "20432"}},
		weekAreas: []areaName{{"釧路・根室・十勝地方", "014000"}}, weekStations: []areaName{{"釧路", "19432"}},
	},
	// More stations than areas, in another order, and weekly areas of one season.
	"020000": {
		code: "020000", publisher: "青森地方気象台",
		areas:        []areaName{{"津軽", "020010"}, {"下北", "020020"}, {"三八上北", "020030"}},
		stations:     []areaName{{"青森", "31312"}, {"八戸", "31602"}, {"むつ", "31111"}, {"深浦", "31436"}, {"弘前", "31461"}},
		weekAreas:    []areaName{{"津軽", "020010"}, {"下北・三八上北", "020200"}},
		weekStations: []areaName{{"青森", "31312"}, {"八戸", "31602"}},
	},
	"070000": {
		code: "070000", publisher: "福島地方気象台", inland: true,
		areas:        []areaName{{"中通り", "070010"}, {"浜通り", "070020"}, {"会津", "070030"}},
		stations:     []areaName{{"福島", "36127"}, {"小名浜", "36846"}, {"若松", "36361"}, {"白河", "36667"}, {"郡山", "36476"}},
		weekAreas:    []areaName{{"中通り・浜通り", "070100"}, {"会津", "070030"}},
		weekStations: []areaName{{"福島", "36127"}, {"若松", "36361"}},
	},
}

// issue makes up the forecast that the office issues at a time: which days it has depends on the hour, as with JMA.
func (o madeUpOffice) issue(at time.Time) []bulletin {
	d0 := midnight(at)
	days, firstSlot, weekFrom := 3, 18, 1
	week := at
	switch {
	case at.Hour() < 11:
		days, firstSlot, weekFrom = 2, 6, 0
		week = d0.Add(-7 * time.Hour)
	case at.Hour() < 17:
		firstSlot = 12
	}
	short := bulletin{Office: o.publisher, Reported: stamp(at), Series: []series{
		o.weatherSeries(at, days), o.rainSeries(d0.Add(time.Duration(firstSlot)*time.Hour), d0.AddDate(0, 0, 2)), o.temperatureSeries(at),
	}}
	return []bulletin{short, {Office: o.publisher, Reported: stamp(week), Series: o.weekSeries(d0.AddDate(0, 0, weekFrom))}}
}

func (o madeUpOffice) weatherSeries(at time.Time, days int) series {
	s := series{Times: []string{stamp(at)}}
	for i := 1; i < days; i++ {
		s.Times = append(s.Times, stamp(midnight(at).AddDate(0, 0, i)))
	}
	for i, area := range o.areas {
		v := areaValues{Area: area}
		for d := range days {
			w := madeUpWeather[(i+d)%len(madeUpWeather)]
			v.Codes, v.Weathers = append(v.Codes, w.code), append(v.Weathers, w.text)
			v.Winds = append(v.Winds, "北の風　後　南の風　海上　では　やや強く")
			if !o.inland {
				v.Waves = append(v.Waves, "１．５メートル　後　１メートル")
			}
		}
		s.Areas = append(s.Areas, v)
	}
	return s
}

var madeUpWeather = [...]struct {
	code, text string
	rain       int
}{
	{"101", "晴れ　夜遅く　くもり", 10}, {"202", "くもり　昼過ぎ　一時　雨", 40}, {"300", "雨", 80}, {"211", "くもり　後　晴れ", 20}, {"400", "雪", 70},
}

func (o madeUpOffice) rainSeries(from, to time.Time) series {
	var s series
	for t := from; t.Before(to); t = t.Add(slotLength) {
		s.Times = append(s.Times, stamp(t))
	}
	for i, area := range o.areas {
		v := areaValues{Area: area}
		for j := range s.Times {
			day := int(from.Add(time.Duration(j)*slotLength).Sub(midnight(from)) / (24 * time.Hour))
			v.Pops = append(v.Pops, strconv.Itoa(madeUpWeather[(i+day)%len(madeUpWeather)].rain+j%3*10-10))
		}
		s.Areas = append(s.Areas, v)
	}
	return s
}

// temperatureSeries has the day itself until 17:00, its 00:00 entry repeating the maximum.
func (o madeUpOffice) temperatureSeries(at time.Time) series {
	d0 := midnight(at)
	d1 := d0.AddDate(0, 0, 1)
	s := series{Times: []string{stamp(d1), stamp(d1.Add(9 * time.Hour))}}
	if at.Hour() < 17 {
		s.Times = append([]string{stamp(d0.Add(9 * time.Hour)), stamp(d0)}, s.Times...)
	}
	for i, station := range o.stations {
		temps := []string{strconv.Itoa(3 + i), strconv.Itoa(14 + i)}
		if at.Hour() < 17 {
			temps = append([]string{strconv.Itoa(12 + i), strconv.Itoa(12 + i)}, temps...)
		}
		s.Areas = append(s.Areas, areaValues{Area: station, Temps: temps})
	}
	return s
}

// weekSeries leaves out what JMA leaves out for the first two days.
func (o madeUpOffice) weekSeries(from time.Time) []series {
	var k, kt series
	for d := range 7 {
		k.Times = append(k.Times, stamp(from.AddDate(0, 0, d)))
	}
	kt.Times = k.Times
	number := func(d, n int) string {
		if d == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	for i, area := range o.weekAreas {
		v := areaValues{Area: area}
		t := areaValues{Area: o.weekStations[i]}
		for d := range 7 {
			w := madeUpWeather[(i+d+1)%len(madeUpWeather)]
			v.Codes, v.Pops = append(v.Codes, w.code), append(v.Pops, number(d, w.rain))
			v.Reliabilities = append(v.Reliabilities, strings.Split(",,A,A,B,C,A", ",")[d])
			t.Min, t.Max = append(t.Min, number(d, 2+i-d)), append(t.Max, number(d, 11+i+d))
			t.MinLower, t.MinUpper = append(t.MinLower, number(d, 1+i-d)), append(t.MinUpper, number(d, 4+i-d))
			t.MaxLower, t.MaxUpper = append(t.MaxLower, number(d, 9+i+d)), append(t.MaxUpper, number(d, 13+i+d))
		}
		k.Areas, kt.Areas = append(k.Areas, v), append(kt.Areas, t)
	}
	return []series{k, kt}
}

func stamp(t time.Time) string { return t.In(jst).Format(time.RFC3339) }

// encode writes bulletins as JMA does: only the keys that a series has.
func encode(t testing.TB, bulletins []bulletin) string {
	t.Helper()
	data, err := json.Marshal(bulletins)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	data, err = json.Marshal(withoutNulls(value))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func withoutNulls(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutNulls(value[i])
		}
	case map[string]any:
		for key, member := range value {
			if value[key] = withoutNulls(member); member == nil {
				delete(value, key)
			}
		}
	}
	return value
}

// areaJSON is JMA's table of areas, cut down to what testdata/areas.txt lists.
func areaJSON(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/areas.txt")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name     string   `json:"name"`
		EnName   string   `json:"enName"`
		Kana     string   `json:"kana,omitempty"`
		Parent   string   `json:"parent,omitempty"`
		Children []string `json:"children,omitempty"`
	}
	above := map[string]string{"class20s": "class15s", "class15s": "class10s", "class10s": "offices", "offices": "centers"}
	table := map[string]map[string]*entry{}
	for line := range strings.Lines(string(text)) {
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
	data, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// moment is a time in Japan.
func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, jst)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
