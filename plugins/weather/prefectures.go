package main

import _ "embed"

// prefecture is one of the 47, with its capital and the forecast area (a class10 code) that the capital lies in. The
// area's code starts with the prefecture's number.
type prefecture struct {
	name, kana, en                       string
	class10                              string
	capital, capitalKana, capitalEnglish string
}

//go:embed prefectures.txt
var prefecturesFile string

// prefectures are in the order of their numbers (JIS X 0401), from 1.
var prefectures = table(prefecturesFile, func(f []string) prefecture {
	return prefecture{f[0], f[1], f[2], f[3], f[4], f[5], f[6]}
})

// prefectureOf returns the number of the prefecture that an office or class10 code belongs to, 0 if there is none.
func prefectureOf(code string) int {
	if len(code) < 2 {
		return 0
	}
	n := int(code[0]-'0')*10 + int(code[1]-'0')
	if code[0] < '0' || code[0] > '9' || code[1] < '0' || code[1] > '9' || n > len(prefectures) {
		return 0
	}
	return n
}

// office is a forecast office whose area is not a whole prefecture, with its main class10 area. Elsewhere the office is
// the prefecture.
type office struct{ code, name, en, class10 string }

//go:embed offices.txt
var officesFile string

var offices = table(officesFile, func(f []string) office { return office{f[0], f[1], f[2], f[3]} })

// fileOf returns the office in whose forecast file an office's areas are: Tokachi and Amami have no file of their own.
func fileOf(office string) string {
	switch office {
	case "014030":
		return "014100"
	case "460040":
		return "460100"
	}
	return office
}
