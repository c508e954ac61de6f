package config

import (
	"os"
	"strings"
	"testing"
)

func TestParseDotEnv(t *testing.T) {
	t.Parallel()
	got, err := parseDotEnv("\ufeff# comment\r\nA=1\r\n\nexport B = two words # comment\nC='a # b'\nD=\"x\\n\\\"y\\\"\" # comment\nE=\nF=#no\nG=a#b\nH=${A}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"A", "1"}, {"B", "two words"}, {"C", "a # b"}, {"D", "x\n\"y\""}, {"E", ""}, {"F", ""},
		{"G", "a#b"}, {"H", "${A}"}}
	for i, v := range want {
		if i >= len(got) || got[i] != v {
			t.Errorf("got %q, want %q", got, want)
			break
		}
	}
	for text, want := range map[string]string{
		"A=1\nsecret":   "2: a line must be NAME=VALUE",
		"1A=secret":     "1: a line must be",
		"A='secret":     "1: the value of A",
		"A=\"secret":    "1: the value of A",
		"A=\"s\" cret'": "1: the value of A",
	} {
		if _, err := parseDotEnv(text); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestExample checks that the example beside the README can be taken as it is: all of it is commented out or has the
// default.
func TestExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseDotEnv(string(text)); err != nil {
		t.Error(err)
	}
	var known []string
	for _, s := range new(Config).table() {
		known = append(known, s.environment()...)
	}
	for _, line := range strings.Split(string(text), "\n") {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "#"), "=")
		if !ok || strings.Contains(name, " ") || strings.HasSuffix(name, "_KEY") || strings.HasPrefix(name, "SLACK_") {
			continue
		}
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			t.Errorf("%s sets nothing", name)
		}
	}
}
