package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// jst is the zone of all of JMA's times and of what "today" means.
var jst = time.FixedZone("JST", 9*60*60)

// forecast is one office's file: a bulletin for two or three days in detail, and usually one for the week.
type forecast struct {
	short, week bulletin
}

// bulletin is one issue of a forecast. All values in it are strings, "" where JMA gives none, and nothing can be relied
// on: JMA publishes no contract for the file.
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
	Area          areaName `json:"area"`
	Codes         []string `json:"weatherCodes"`
	Weathers      []string `json:"weathers"`
	Winds         []string `json:"winds"`
	Waves         []string `json:"waves"`
	Pops          []string `json:"pops"`
	Temps         []string `json:"temps"`
	Reliabilities []string `json:"reliabilities"`
	Min           []string `json:"tempsMin"`
	MinLower      []string `json:"tempsMinLower"`
	MinUpper      []string `json:"tempsMinUpper"`
	Max           []string `json:"tempsMax"`
	MaxLower      []string `json:"tempsMaxLower"`
	MaxUpper      []string `json:"tempsMaxUpper"`
}

// areaName names a class10 area, a weekly area or a station: which one depends on the series.
type areaName struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

var errNoForecast = errors.New("it holds no forecast")

// parseForecast reads a forecast file. It fails if data is not JSON, not of a forecast's shape, or has no time of issue
// or no areas.
func parseForecast(data []byte) (*forecast, error) {
	var bulletins []bulletin
	if err := json.Unmarshal(data, &bulletins); err != nil {
		return nil, err
	}
	if len(bulletins) == 0 {
		return nil, errNoForecast
	}
	f := &forecast{short: bulletins[0]}
	if len(bulletins) > 1 {
		f.week = bulletins[1]
	}
	if _, err := time.Parse(time.RFC3339, f.short.Reported); err != nil {
		return nil, fmt.Errorf("its time of issue: %w", err)
	}
	if len(f.short.weather().Areas) == 0 {
		return nil, errNoForecast
	}
	return f, nil
}

func (b bulletin) reported() time.Time {
	t, _ := parseTime(b.Reported)
	return t
}

// The series of a bulletin are distinguished by their content, not by their order.

func (b bulletin) weather() series {
	return b.find(func(v areaValues) bool { return v.Codes != nil })
}

func (b bulletin) rain() series {
	return b.find(func(v areaValues) bool { return v.Pops != nil && v.Codes == nil })
}

func (b bulletin) temperatures() series {
	return b.find(func(v areaValues) bool { return v.Temps != nil || v.Min != nil || v.Max != nil })
}

func (b bulletin) find(has func(areaValues) bool) series {
	for _, s := range b.Series {
		if slices.ContainsFunc(s.Areas, has) {
			return s
		}
	}
	return series{}
}

// index returns where the area with this code is, -1 if it is nowhere. No area has the code "".
func (s series) index(code string) int {
	return slices.IndexFunc(s.Areas, func(v areaValues) bool { return v.Area.Code == code && code != "" })
}

func (s series) has(code string) bool { return s.index(code) >= 0 }

// area returns the values of the area with this code, or else the zero value.
func (s series) area(code string) areaValues {
	if i := s.index(code); i >= 0 {
		return s.Areas[i]
	}
	return areaValues{}
}

// each calls do with the index and time of each of the series' times that can be read.
func (s series) each(do func(i int, at time.Time)) {
	for i, text := range s.Times {
		if at, ok := parseTime(text); ok {
			do(i, at)
		}
	}
}

func parseTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	return t.In(jst), err == nil
}

// at returns a value by index: "" where the array is too short.
func at(values []string, i int) string {
	if i < len(values) {
		return values[i]
	}
	return ""
}
