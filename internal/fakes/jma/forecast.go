package jma

import (
	"strconv"
	"strings"
	"time"
)

// The forecasts in this file are made up: the shapes, names and codes are JMA's, the values are not.

// bulletin is one part of a forecast file: the days ahead, or the week.
type bulletin struct {
	Office   string   `json:"publishingOffice"`
	Reported string   `json:"reportDatetime"`
	Series   []series `json:"timeSeries"`
}

// series is a table of times and areas. An area's values belong to the times with the same index.
type series struct {
	Times []string     `json:"timeDefines"`
	Areas []areaValues `json:"areas"`
}

type areaValues struct {
	Area          area     `json:"area"`
	Codes         []string `json:"weatherCodes,omitempty"`
	Weathers      []string `json:"weathers,omitempty"`
	Winds         []string `json:"winds,omitempty"`
	Waves         []string `json:"waves,omitempty"`
	Pops          []string `json:"pops,omitempty"`
	Temps         []string `json:"temps,omitempty"`
	Reliabilities []string `json:"reliabilities,omitempty"`
	Min           []string `json:"tempsMin,omitempty"`
	MinLower      []string `json:"tempsMinLower,omitempty"`
	MinUpper      []string `json:"tempsMinUpper,omitempty"`
	Max           []string `json:"tempsMax,omitempty"`
	MaxLower      []string `json:"tempsMaxLower,omitempty"`
	MaxUpper      []string `json:"tempsMaxUpper,omitempty"`
}

// area is a forecast area, a weekly area or a station: which one depends on the series.
type area struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// office is the layout of an office's file.
type office struct {
	code, publisher string
	areas           []area
	stations        []area
	weekAreas       []area
	weekStations    []area
	inland          bool
}

var offices = map[string]office{
	"130000": {
		code: "130000", publisher: "気象庁",
		areas:        []area{{"東京地方", "130010"}, {"伊豆諸島北部", "130020"}, {"伊豆諸島南部", "130030"}, {"小笠原諸島", "130040"}},
		stations:     []area{{"東京", "44132"}, {"大島", "44172"}, {"八丈島", "44263"}, {"父島", "44301"}},
		weekAreas:    []area{{"東京地方", "130010"}, {"伊豆諸島", "130100"}, {"小笠原諸島", "130040"}},
		weekStations: []area{{"東京", "44132"}, {"八丈島", "44263"}, {"父島", "44301"}},
	},
	"270000": {
		code: "270000", publisher: "大阪管区気象台",
		areas: []area{{"大阪府", "270000"}}, stations: []area{{"大阪", "62078"}},
		weekAreas: []area{{"大阪府", "270000"}}, weekStations: []area{{"大阪", "62078"}},
	},
	"016000": {
		code: "016000", publisher: "札幌管区気象台",
		areas:     []area{{"石狩地方", "016010"}, {"空知地方", "016020"}, {"後志地方", "016030"}},
		stations:  []area{{"札幌", "14163"}, {"岩見沢", "15356"}, {"倶知安", "16217"}},
		weekAreas: []area{{"石狩・空知・後志地方", "016000"}}, weekStations: []area{{"札幌", "14163"}},
	},
	"471000": {
		code: "471000", publisher: "沖縄気象台",
		areas:     []area{{"本島中南部", "471010"}, {"本島北部", "471020"}, {"久米島", "471030"}},
		stations:  []area{{"那覇", "91197"}, {"名護", "91107"}, {"久米島", "91146"}},
		weekAreas: []area{{"沖縄本島地方", "471000"}}, weekStations: []area{{"那覇", "91197"}},
	},
	// Not in the order of the codes, and with the area of an office that has no file.
	"014100": {
		code: "014100", publisher: "釧路地方気象台",
		areas:     []area{{"釧路地方", "014020"}, {"根室地方", "014010"}, {"十勝地方", "014030"}},
		stations:  []area{{"釧路", "19432"}, {"根室", "18273"}, {"帯広", "20432"}},
		weekAreas: []area{{"釧路・根室・十勝地方", "014000"}}, weekStations: []area{{"釧路", "19432"}},
	},
	// More stations than areas, in another order, and weekly areas of one season.
	"020000": {
		code: "020000", publisher: "青森地方気象台",
		areas:        []area{{"津軽", "020010"}, {"下北", "020020"}, {"三八上北", "020030"}},
		stations:     []area{{"青森", "31312"}, {"八戸", "31602"}, {"むつ", "31111"}, {"深浦", "31436"}, {"弘前", "31461"}},
		weekAreas:    []area{{"津軽", "020010"}, {"下北・三八上北", "020200"}},
		weekStations: []area{{"青森", "31312"}, {"八戸", "31602"}},
	},
	"070000": {
		code: "070000", publisher: "福島地方気象台", inland: true,
		areas:        []area{{"中通り", "070010"}, {"浜通り", "070020"}, {"会津", "070030"}},
		stations:     []area{{"福島", "36127"}, {"小名浜", "36846"}, {"若松", "36361"}, {"白河", "36667"}, {"郡山", "36476"}},
		weekAreas:    []area{{"中通り・浜通り", "070100"}, {"会津", "070030"}},
		weekStations: []area{{"福島", "36127"}, {"若松", "36361"}},
	},
}

// issue makes up the forecast that the office issues at a time: which days it has depends on the hour, as with JMA.
func (o office) issue(at time.Time) []bulletin {
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

func (o office) weatherSeries(at time.Time, days int) series {
	s := series{Times: []string{stamp(at)}}
	for i := 1; i < days; i++ {
		s.Times = append(s.Times, stamp(midnight(at).AddDate(0, 0, i)))
	}
	for i, at := range o.areas {
		v := areaValues{Area: at}
		for d := range days {
			w := weathers[(i+d)%len(weathers)]
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

var weathers = [...]struct {
	code, text string
	rain       int
}{
	{"101", "晴れ　夜遅く　くもり", 10}, {"202", "くもり　昼過ぎ　一時　雨", 40}, {"300", "雨", 80}, {"211", "くもり　後　晴れ", 20}, {"400", "雪", 70},
}

func (o office) rainSeries(from, to time.Time) series {
	var s series
	for t := from; t.Before(to); t = t.Add(slot) {
		s.Times = append(s.Times, stamp(t))
	}
	for i, at := range o.areas {
		v := areaValues{Area: at}
		for j := range s.Times {
			day := int(from.Add(time.Duration(j)*slot).Sub(midnight(from)) / (24 * time.Hour))
			v.Pops = append(v.Pops, strconv.Itoa(weathers[(i+day)%len(weathers)].rain+j%3*10-10))
		}
		s.Areas = append(s.Areas, v)
	}
	return s
}

// temperatureSeries has the day itself until 17:00, its 00:00 entry repeating the maximum.
func (o office) temperatureSeries(at time.Time) series {
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
func (o office) weekSeries(from time.Time) []series {
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
	for i, at := range o.weekAreas {
		v := areaValues{Area: at}
		t := areaValues{Area: o.weekStations[i]}
		for d := range 7 {
			w := weathers[(i+d+1)%len(weathers)]
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

// slot is the length of the times that a chance of rain is for.
const slot = 6 * time.Hour

var jst = time.FixedZone("JST", 9*60*60)

// midnight is the start of t's day in Japan.
func midnight(t time.Time) time.Time {
	t = t.In(jst)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, jst)
}

func stamp(t time.Time) string { return t.In(jst).Format(time.RFC3339) }
