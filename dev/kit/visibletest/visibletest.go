// Package visibletest has Tricks, texts that attack terminals, and Check, which fails a test if a text does.
package visibletest

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/visible"
)

// Tricks are texts that control a terminal, or show something else than they contain. FORGED must not begin a line.
var Tricks = map[string]string{
	"clears the screen":            "a\x1b[2J\x1b[1;1Hb",
	"hides its target (OSC 8)":     "a\x1b]8;;https://evil.example\x1b\\bank.example\x1b]8;;\x1b\\b",
	"writes the clipboard":         "a\x1b]52;c;ZXZpbA==\x07b",
	"sets the title":               "a\x1b]0;root@prod\x07b",
	"sends an answer (DECRQSS)":    "a\x1bP$qm\x1b\\b",
	"draws (sixel)":                "a\x1bPq#0;2;0;0;0~\x1b\\b",
	"overwrites its line":          "a\rFORGED",
	"goes back":                    "denied\b\b\b\b\b\ballowed",
	"moves up":                     "a\x1b[1A\x1b[2KFORGED",
	"CSI of eight bits":            "a\u009b2Jb",
	"CSI of one byte":              "a\x9b2Jb",
	"OSC of eight bits":            "a\u009d0;title\u009cb",
	"bytes that are not UTF-8":     "a\xff\xfe\xc0\x80b",
	"a line of its own":            "a\nFORGED",
	"a next line (NEL)":            "a\u0085FORGED",
	"a line separator":             "a\u2028FORGED",
	"a column of its own":          "a\tactive\tFORGED",
	"vertical tab and form feed":   "a\v\fFORGED",
	"reorders (RLO)":               "invoice\u202egpj.exe",
	"reorders (isolates)":          "a\u2067b\u2069\u2066c\u2069",
	"right-to-left marks":          "a\u200f\u061cb",
	"says it in tags":              "a\U000e0049\U000e0067\U000e006eb",
	"says it in selectors":         "a\ufe00\ufe01\U000e0100\U000e01efb",
	"zero width":                   "ad\u200bm\u200ci\u200dn\u2060\ufeff",
	"fillers and blanks":           "a\u3164\u115f\u1160\uffa0\u2800b",
	"soft hyphens":                 "ad\u00admin",
	"annotations":                  "a\ufff9b\ufffac\ufffb",
	"marks over neighbouring rows": "a" + strings.Repeat("\u0300\u0316", 50),
	"rings and deletes":            "a\x07\x7fb",
	"ends a paste":                 "a\x1b[201~\rFORGED",
	"commands of eight bits":       "a\u0090$qm\u009c\u009eprivate\u009c\u009fprogram\u009cb",
	"application and privacy":      "a\x1b_Gf=100;AAAA\x1b\\\x1b^x\x1b\\b",
	"operators nobody sees":        "a\u2061b\u2062c\u2063d\u2064",
	"deprecated format characters": "a\u206ab\u206bc\u206dd\u206ee\u206f",
	"separators of old scripts":    "a\u180eb\u17b4c\u17b5d",
	"format of music and writing":  "a\U0001d173b\U0001d17ac\U0001bca0d\U0001bca3",
}

// Check fails the test if text has hidden characters or a forged line.
func Check(t testing.TB, text string) {
	t.Helper()
	if r, found := visible.First(text, "\n\t"); found {
		t.Errorf("%U reaches the terminal: %q", r, text)
	}
	if strings.Contains("\n"+text, "\nFORGED") {
		t.Errorf("a line is forged: %q", text)
	}
}
