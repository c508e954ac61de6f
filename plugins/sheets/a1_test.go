package main

import (
	"strings"
	"testing"
)

func TestParseArea(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Sheet1!A1":              "'Sheet1'!A1",
		"Sheet1":                 "'Sheet1'",
		"Sheet1!":                "'Sheet1'",
		"シート1!A1:B2":             "'シート1'!A1:B2",
		"'It''s me'!b2":          "'It''s me'!B2",
		"'a!b'!A:C":              "'a!b'!A:C",
		"売上 2026/04!$B$2:$D":     "'売上 2026/04'!B2:D",
		"A1":                     "A1",
		"c7:a3":                  "A3:C7",
		"2:5":                    "2:5",
		"5:2":                    "2:5",
		"ZZZ10000000":            "ZZZ10000000",
		"AAAA1":                  "'AAAA1'",
		"Q1":                     "Q1",
		"'Q1'":                   "'Q1'",
		"'Q1'!A1":                "'Q1'!A1",
		"  Sheet1!A1 ":           "'Sheet1'!A1",
		"../../secrets!A1":       "'../../secrets'!A1",
		"A2:5":                   "'A2:5'", // not cells, so a name
		"x!y":                    "",
		"Sheet1!A0":              "",
		"Sheet1!A10000001":       "",
		"Sheet1!AAAA1":           "",
		"Sheet1!A":               "",
		"Sheet1!1":               "",
		"Sheet1!A:5":             "",
		"Sheet1!A1:B2:C3":        "",
		"Sheet1!:":               "",
		"'open!A1":               "",
		"'a'b'!A1":               "",
		"a\nb!A1":                "",
		" ":                      "",
		"!":                      "",
		strings.Repeat("あ", 101): "",
	} {
		a, err := parseArea(text)
		if got := a.String(); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q is read as %q (%v), want %q", text, got, err, want)
		}
	}
}

func TestPrecision(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]int{
		"0": 0, "-0": 0, "7": 1, "-1200": 2, "0.00123": 3, "1.50": 2, "1000.5": 5, "123456789012345": 15,
		"1234567890123456": 16,
		"1.5e300":          2, "12E-3": 2, "true": 0, "null": 0, `"12345678901234567890"`: 0,
	} {
		if got := precision(number); got != want {
			t.Errorf("%s has %d digits, want %d", number, got, want)
		}
	}
}

// FuzzParseArea checks that what is sent for a range is read as the same range, and that no name gets out of its quotes.
func FuzzParseArea(f *testing.F) {
	for _, seed := range []string{"Sheet1!A1:B2", "'It''s'!A:C", "A2:C", "''''!A1", "a'b!c7", "シート1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseArea(text)
		if err != nil {
			return
		}
		again, err := parseArea(a.String())
		if err != nil || again != a {
			t.Errorf("%q becomes %q, which is read as %+v (%v) and not as %+v", text, a, again, err, a)
		}
	})
}
