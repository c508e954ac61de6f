package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:generate go run compose_gen.go

// composed has the characters that Unicode composes of two others; compose_gen.go describes it.
//
//go:embed compose.bin
var composed string

var compositions = sync.OnceValue(func() map[[2]rune]rune {
	table := make(map[[2]rune]rune, len(composed)/6)
	at := func(i int) rune { return rune(composed[i]) | rune(composed[i+1])<<8 }
	for i := 0; i+6 <= len(composed); i += 6 {
		table[[2]rune{at(i), at(i + 2)}] = at(i + 4)
	}
	return table
})

// compose returns text with letters and their marks as one character (NFC), so that texts which look the same can be
// compared: macOS writes names with marks of their own (NFD). Marks in an unusual order stay as they are.
func compose(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x300 && isMark(r) }) < 0 {
		return text
	}
	out := make([]rune, 0, len(text))
	for _, r := range text {
		if len(out) > 0 {
			if both := composition(out[len(out)-1], r); both != 0 {
				out[len(out)-1] = both
				continue
			}
		}
		out = append(out, r)
	}
	return string(out)
}

// isMark reports whether a character can be the second of two that are composed.
func isMark(r rune) bool { return marks()[r] || r >= 0x1161 && r <= 0x11c2 }

var marks = sync.OnceValue(func() map[rune]bool {
	second := map[rune]bool{}
	for pair := range compositions() {
		second[pair[1]] = true
	}
	return second
})

// composition returns what two characters are composed to, or 0. That of Hangul is computed (Unicode, section 3.12).
func composition(a, b rune) rune {
	const syllables, leading, vowel, trailing, vowels, trailings = 0xac00, 0x1100, 0x1161, 0x11a7, 21, 28
	switch {
	case a >= leading && a < leading+19 && b >= vowel && b < vowel+vowels:
		return syllables + ((a-leading)*vowels+b-vowel)*trailings
	case a >= syllables && a <= 0xd7a3 && (a-syllables)%trailings == 0 && b > trailing && b < trailing+trailings:
		return a + b - trailing
	}
	return compositions()[[2]rune{a, b}]
}

// showName returns the name of a file as callers know it. Bytes that are no text, control characters and "\" become
// \xNN, so that every name fits into one line of text and can be given back.
func showName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == utf8.RuneError }) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r < ' ' || r == 0x7f || r == '\\' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

// nameShown reverses showName, for a path. A "\" that showName would not have written stays.
func nameShown(shown string) string {
	before, rest, found := strings.Cut(shown, `\x`)
	if !found {
		return shown
	}
	var b strings.Builder
	for b.WriteString(before); found; b.WriteString(before) {
		c, escaped := unescape(rest)
		if escaped {
			b.WriteByte(c)
			rest = rest[2:]
		} else {
			b.WriteString(`\x`)
		}
		before, rest, found = strings.Cut(rest, `\x`)
	}
	return b.String()
}

// unescape returns the byte whose number text begins with, if that is one which showName escapes.
func unescape(text string) (byte, bool) {
	if len(text) < 2 || strings.ToLower(text[:2]) != text[:2] {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:2], 16, 8)
	c := byte(n)
	return c, err == nil && c != 0 && (c < ' ' || c >= 0x7f || c == '\\')
}
