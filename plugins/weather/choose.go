package main

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// chooser finds the codes of a place in a forecast file. Its tables are the built-in ones; where these do not fit the
// file, it asks for JMA's, and where those do not either, it goes by the order in the file.
type chooser struct {
	file *forecast
	jma  client
}

// choose returns the codes for a place. The area is "" if the file has none of the place's class10 code or its name.
func (c chooser) choose(ctx context.Context, at place) places {
	known, _ := areaOf(at.class10)
	p := places{area: c.area(at.class10, known.name)}
	p.station = c.station(ctx, at, known.stationList())
	p.weekArea = c.weekArea(ctx, at.class10, known)
	p.weekStation = c.weekStation(p.weekArea, known.stationList())
	return p
}

func (c chooser) area(class10, name string) string {
	s := c.file.short.weather()
	if s.has(class10) {
		return class10
	}
	return s.named(name)
}

// station returns the station for a place: the one in its municipality, else one in its class15 area, else the main one
// of its class10 area. A station that the file lacks is passed over. The first station of the area would be wrong: 郡山市
// would get 福島.
func (c chooser) station(ctx context.Context, at place, known []station) string {
	s := c.file.short.temperatures()
	if len(s.Areas) == 0 {
		return ""
	}
	for _, k := range known {
		if isTownOf(k.name, at.name) && s.has(k.code) {
			return k.code
		}
	}
	for _, k := range known {
		if k.class15 == at.class15 && k.class15 != "" && s.has(k.code) {
			return k.code
		}
	}
	if code := s.firstStation(known); code != "" {
		return code
	}
	if code := s.firstOf(c.jma.stationsOf(ctx, at.class10)); code != "" {
		return code
	}
	return s.beside(c.file.short.weather(), at.class10)
}

// isTownOf reports whether a station is named after the municipality, as 郡山 is after 郡山市.
func isTownOf(station, municipality string) bool {
	kind, ok := strings.CutPrefix(municipality, station)
	return ok && station != "" && utf8.RuneCountInString(kind) == 1
}

func (c chooser) weekArea(ctx context.Context, class10 string, known forecastArea) string {
	s := c.file.week.weather()
	if len(s.Areas) == 0 {
		return ""
	}
	if code := s.firstOf(append(strings.Fields(known.weekly), class10)); code != "" {
		return code
	}
	if code := s.firstOf(c.jma.weekAreasOf(ctx, class10)); code != "" {
		return code
	}
	if len(s.Areas) == 1 {
		return s.Areas[0].Area.Code
	}
	return ""
}

func (c chooser) weekStation(weekArea string, known []station) string {
	s := c.file.week.temperatures()
	if code := s.firstStation(known); code != "" {
		return code
	}
	return s.beside(c.file.week.weather(), weekArea)
}

// firstOf returns the first of the codes that the series has, or else "".
func (s series) firstOf(codes []string) string {
	if i := slices.IndexFunc(codes, s.has); i >= 0 {
		return codes[i]
	}
	return ""
}

// firstStation returns the code of the first of the stations that the series has, by code or else by name: a station
// that moves gets a new code.
func (s series) firstStation(known []station) string {
	for _, k := range known {
		if s.has(k.code) {
			return k.code
		}
	}
	for _, k := range known {
		if code := s.named(k.name); code != "" {
			return code
		}
	}
	return ""
}

// named returns the code of the area of this name, or else "".
func (s series) named(name string) string {
	i := slices.IndexFunc(s.Areas, func(v areaValues) bool { return v.Area.Name == name && name != "" })
	if i < 0 {
		return ""
	}
	return s.Areas[i].Area.Code
}

// beside returns the code of the area that stands where other has the area of this code, if both list as many areas.
func (s series) beside(other series, code string) string {
	i := other.index(code)
	if i < 0 || len(s.Areas) != len(other.Areas) {
		return ""
	}
	return s.Areas[i].Area.Code
}
