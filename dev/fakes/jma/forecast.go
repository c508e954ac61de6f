package jma

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// office is the layout of an office's file, and its climate.
type office struct {
	publisher    string
	names        []string // of the office's prefecture or region and of the stations, in Japanese and then in English
	areas        []area
	stations     []area
	weekAreas    []area
	weekStations []area
	inland       bool
	// warmth is the difference to the temperature in Tokyo, in degrees. seed varies the weather; Tokyo's is 0.
	warmth, seed int
}

//go:embed offices.txt
var officeTable string

// offices returns the offices that have files, by their codes.
var offices = sync.OnceValue(func() map[string]office {
	table, tokyo := map[string]office{}, 0
	for line := range strings.Lines(officeTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 9 || strings.HasPrefix(line, "#") {
			continue
		}
		o := office{publisher: f[1], inland: f[5] == "inland", seed: len(table)}
		o.warmth, _ = strconv.Atoi(f[4])
		english := []string{f[3]}
		o.names = []string{f[2]}
		o.areas, _ = readAreas(f[6])
		stations, stationNames := readAreas(f[7])
		o.stations = stations
		for i, station := range stations {
			o.names = append(o.names, station.Name)
			english = append(english, strings.ReplaceAll(stationNames[i], "_", " "))
		}
		o.names = append(o.names, english...)
		weekAreas, codes := readAreas(f[8])
		o.weekAreas = weekAreas
		for _, code := range codes {
			o.weekStations = append(o.weekStations,
				stations[slices.IndexFunc(stations, func(a area) bool { return a.Code == code })])
		}
		if f[0] == "130000" {
			tokyo = o.seed
		}
		table[f[0]] = o
	}
	for code, o := range table {
		o.seed = (o.seed - tokyo + len(table)) % len(table)
		table[code] = o
	}
	return table
})

// readAreas reads a list of areas, and what stands behind their names.
func readAreas(text string) (areas []area, more []string) {
	for entry := range strings.SplitSeq(text, ", ") {
		code, rest, _ := strings.Cut(entry, " ")
		name, behind, _ := strings.Cut(rest, " ")
		areas, more = append(areas, area{name, code}), append(more, behind)
	}
	return areas, more
}

// warmer has the difference of each month's temperature to April's in Tokyo, in degrees.
var warmer = [...]int{-5, -4, 0, 0, 7, 10, 15, 17, 12, 6, 2, -3}

// degrees adds to Tokyo's temperature on a day in April what is different here and then: the south is warmer in winter
// above all.
func (o office) degrees(april int, at time.Time, day int) int {
	season := warmer[at.In(jst).Month()-1]
	return april + season + o.warmth*(20-season)/20 + [...]int{0, 1, -1, 2, -2, 3, -3, 1, -2, 2, -1, 3,
		-3}[o.seed*(day+1)%13]
}

// sky is the weather of an area on a day. Snow falls in the cold alone.
func (o office) sky(area int, at time.Time, day int) weather {
	w := weathers[(area+day+o.seed)%len(weathers)]
	switch high := o.degrees(12, at, day); {
	case w.code == snow.code && high > 3:
		return showers
	case w.rain >= 40 && high <= 0:
		return snow
	}
	return w
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
		o.weatherSeries(at, days), o.rainSeries(d0.Add(time.Duration(firstSlot)*time.Hour), d0.AddDate(0, 0, 2)),
		o.temperatureSeries(at),
	}}
	return []bulletin{short, {Office: o.publisher, Reported: stamp(week),
		Series: o.weekSeries(d0.AddDate(0, 0, weekFrom))}}
}

func (o office) weatherSeries(at time.Time, days int) series {
	s := series{Times: []string{stamp(at)}}
	for i := 1; i < days; i++ {
		s.Times = append(s.Times, stamp(midnight(at).AddDate(0, 0, i)))
	}
	for i, here := range o.areas {
		v := areaValues{Area: here}
		for d := range days {
			w := o.sky(i, at, d)
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

type weather struct {
	code, text string
	rain       int
}

var (
	snow     = weather{"400", "雪", 70}
	showers  = weather{"203", "くもり　時々　雨", 60}
	weathers = [...]weather{{"101", "晴れ　夜遅く　くもり", 10}, {"202", "くもり　昼過ぎ　一時　雨", 40}, {"300", "雨", 80},
		{"211", "くもり　後　晴れ", 20}, snow}
)

func (o office) rainSeries(from, to time.Time) series {
	var s series
	for t := from; t.Before(to); t = t.Add(slot) {
		s.Times = append(s.Times, stamp(t))
	}
	for i, here := range o.areas {
		v := areaValues{Area: here}
		for j := range s.Times {
			day := int(from.Add(time.Duration(j)*slot).Sub(midnight(from)) / (24 * time.Hour))
			v.Pops = append(v.Pops, strconv.Itoa(o.sky(i, from, day).rain+j%3*10-10))
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
		number := func(april, day int) string { return strconv.Itoa(o.degrees(april+i%5, at, day)) }
		temps := []string{number(3, 1), number(14, 1)}
		if at.Hour() < 17 {
			temps = append([]string{number(12, 0), number(12, 0)}, temps...)
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
	temperature := func(d, april int) string { return number(d, o.degrees(april, from, d+1)) }
	for i, at := range o.weekAreas {
		v := areaValues{Area: at}
		t := areaValues{Area: o.weekStations[i]}
		for d := range 7 {
			w := o.sky(i, from, d+1)
			v.Codes, v.Pops = append(v.Codes, w.code), append(v.Pops, number(d, w.rain))
			v.Reliabilities = append(v.Reliabilities, strings.Split(",,A,A,B,C,A", ",")[d])
			t.Min, t.Max = append(t.Min, temperature(d, 3+i-d%3)), append(t.Max, temperature(d, 13+i+d%3))
			t.MinLower, t.MinUpper = append(t.MinLower, temperature(d, 2+i-d%3)),
				append(t.MinUpper, temperature(d, 5+i-d%3))
			t.MaxLower, t.MaxUpper = append(t.MaxLower, temperature(d, 11+i+d%3)),
				append(t.MaxUpper, temperature(d, 15+i+d%3))
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
