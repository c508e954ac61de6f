package main

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"two\n\tlines":                 "two\n\tlines",
		"\x1b[2Jaway\u009b":            "[2Jaway",
		"delete \u202egnp.exe\u202c":   "delete gnp.exe",
		"東京 \u2066a\u2069\u200f\u061c": "東京 a",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
