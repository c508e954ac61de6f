package main

import (
	_ "embed"
	"strings"
)

// forecastArea is a class10 area with what JMA's tables say about it; the head of class10s.txt describes the fields.
//
// JMA moves stations and then changes their codes, and may redraw areas: what is not here is looked up in JMA's own
// tables.
type forecastArea struct{ code, office, name, en, stations, weekly string }

// station is a weather station (AMeDAS). Its class15 area is "" if it is the only one of its class10 area.
type station struct{ code, class15, name, en string }

// areaOf returns the built-in entry of a class10 code.
func areaOf(class10 string) (forecastArea, bool) {
	for _, area := range forecastAreas {
		if area.code == class10 {
			return area, true
		}
	}
	return forecastArea{}, false
}

func (a forecastArea) stationList() []station {
	var list []station
	for text := range strings.SplitSeq(a.stations, ", ") {
		code, names, _ := strings.Cut(text, " ")
		code, class15, _ := strings.Cut(code, "/")
		name, en, _ := strings.Cut(names, " ")
		list = append(list, station{code, class15, name, en})
	}
	return list
}

//go:embed class10s.txt
var class10sFile string

var forecastAreas = table(class10sFile, func(f []string) forecastArea {
	return forecastArea{f[0], f[1], f[2], f[3], f[4], f[5]}
})
