package main

import _ "embed"

// telop is the text of one of JMA's weather codes, in JMA's short Japanese and in this plugin's English.
type telop struct{ code, ja, en string }

// telopOf returns the telop of a weather code.
func telopOf(code string) (telop, bool) {
	for _, t := range telops {
		if t.code == code {
			return t, true
		}
	}
	return telop{}, false
}

// telops.txt has the codes that JMA's forecasts use. JMA may add some: an unknown code is shown as it is.
//
//go:embed telops.txt
var telopsFile string

var telops = table(telopsFile, func(f []string) telop { return telop{f[0], f[1], f[2]} })
