package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/hako-run/hako/dev/fakes/jma"
	"github.com/hako-run/hako/host/manifest"
)

// TestManifest checks that the manifest is valid, that every answer matches its output schema, and that its permission
// covers every request.
func TestManifest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "weather.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Config["base_url"].Default; strings.TrimRight(got.(string), "/") != defaultBaseURL {
		t.Errorf("the default base_url is %v, want %s", got, defaultBaseURL)
	}
	tool := m.Tools[0]
	for _, issued := range []string{"2026-04-15 05:00", "2026-04-15 11:00", "2026-04-15 17:00"} {
		fake := newFakeJMA(t, jma.Files(moment(t, issued)))
		for _, date := range []string{today, tomorrow, week} {
			for _, in := range []arguments{{"東京", date, "ja", true}, {"Naha", date, "en", false}, {"郡山", date, "", false}, {"青森", date, "en", true}} {
				checkSchemas(t, &tool, fake.url, in, issued)
			}
		}
		for _, path := range append(fake.asked(), stationPath, weekAreaPath) {
			if !slices.ContainsFunc(m.Permissions.HTTP[0].Paths, func(glob string) bool { return doublestar.MatchUnvalidated(glob, path[1:]) }) {
				t.Errorf("no path of the permission covers %s", path)
			}
		}
	}
}

func checkSchemas(t *testing.T, tool *manifest.Tool, url string, in arguments, issued string) {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Input().Validate(data); err != nil {
		t.Errorf("input %s: %v", data, err)
	}
	_, rep, err := ask(t, url, in, moment(t, issued))
	if err != nil {
		t.Errorf("%+v: %v", in, err)
		return
	}
	if data, err = json.Marshal(rep); err != nil {
		t.Fatal(err)
	}
	if err := tool.Output().Validate(data); err != nil {
		t.Errorf("output %s: %v", data, err)
	}
}
