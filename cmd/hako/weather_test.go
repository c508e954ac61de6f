package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAC1WeatherIsServed: get_weather is offered over MCP, with its parameters.
func TestAC1WeatherIsServed(t *testing.T) {
	t.Parallel()
	dir, _ := offline(t)
	s := serve(t, dir)
	_, answer := s.rpc(t, "", "tools/list", "", "")
	for _, want := range []string{`"name":"get_weather"`, `"location"`, `"date"`} {
		if !strings.Contains(answer, want) {
			t.Errorf("tools/list lacks %s: %.500s", want, answer)
		}
	}
}

// TestAC2WeatherAnswers: get_weather takes a place and a day, and returns the forecast as text.
func TestAC2WeatherAnswers(t *testing.T) {
	t.Parallel()
	dir, _ := offline(t)
	for _, test := range []struct {
		arguments string
		code      int
		want      []string
	}{
		{`{"location":"東京"}`, exitOK, []string{"東京都（東京地方）の天気予報です。", "今日"}},
		{`{"location":"大阪","date":"tomorrow"}`, exitOK, []string{"大阪府の天気予報です。", "明日", "最高気温"}},
		{`{"location":"札幌","date":"week"}`, exitOK, []string{"石狩"}},
		{`{"location":"Paris"}`, exitFailed, []string{"Paris"}},
		{`{}`, exitFailed, []string{"location"}},
	} {
		invoke(t, dir, "call", "get_weather", test.arguments).want(t, test.code, test.want...)
	}
}

// TestAC3WeatherIsJMAs: where nothing else is configured, the forecast is read from the files of the Japan
// Meteorological Agency: recordings of them answer, which are found by their addresses.
func TestAC3WeatherIsJMAs(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("mock: true\nshipped: {enabled: true}\n"))
	invoke(t, dir, "call", "get_weather", `{"location":"東京"}`).want(t, exitOK, "東京",
		"https://www.jma.go.jp/bosai/forecast/")
}
