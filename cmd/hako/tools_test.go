package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTools(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	o := invoke(t, dir, "tools")
	o.want(t, exitOK)
	line, _, _ := strings.Cut(o.stdout, "\n")
	if fields := strings.Fields(line); fields[0] != "probe_config" || fields[1] != "probe" || len(fields) < 4 {
		t.Errorf("the first line is %q", line)
	}
	if !strings.Contains(o.stdout, "Gives the text back.") || strings.Contains(o.stdout, "It changes nothing") {
		t.Errorf("want the first sentence only, got %s", o)
	}
	var list []tool
	if err := json.Unmarshal([]byte(invoke(t, dir, "tools", "--json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 8 || list[1].Name != "probe_echo" ||
		!strings.Contains(string(list[1].InputSchema), `"additionalProperties"`) {
		t.Errorf("got %+v", list)
	}
}

func TestToolsPending(t *testing.T) {
	t.Parallel()
	o := invoke(t, workplace(t, ""), "tools")
	o.want(t, exitOK, "pending", "hako plugin approve probe")
	if o.stdout != "" {
		t.Errorf("a pending plugin's tools are listed: %s", o)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for description, want := range map[string]string{
		"Reads a file. It must exist.":   "Reads a file.",
		"天気予報を調べます。今日と明日です。":             "天気予報を調べます。",
		"One line\nand another":          "One line",
		"Version 1.2 of it":              "Version 1.2 of it",
		"予報（天気。気温）。傘も。":                  "予報（天気。気温）。",
		"Reads (or not. Perhaps) it. So": "Reads (or not. Perhaps) it.",
		"Never closed (a. b":             "Never closed (a. b",
		strings.Repeat("long ", 40):      strings.Repeat("long ", 40)[:79] + "…",
		"":                               "",
	} {
		if got := summary(description); got != want {
			t.Errorf("%q: got %q, want %q", description, got, want)
		}
	}
}
