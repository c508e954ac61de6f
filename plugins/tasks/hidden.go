package main

import (
	"strings"
	"unicode"
)

// hidden reports whether r is a character that nobody sees or that changes the order of text, and that a model reads
// all the same: control characters, format characters (among them those for directions and the tags), line separators,
// variation selectors and fillers. Line feeds and tabs are none, nor is what emoji and some scripts are joined with.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', 0x200c, 0x200d, 0xfe0f:
		return false
	}
	return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point)
}

// visible returns text with a mark in the place of each hidden character.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return '␦'
		}
		return r
	}, text)
}
