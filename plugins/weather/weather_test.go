package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/jma"
	"github.com/hako-run/hako/pdk/pdktest"
)

var update = flag.Bool("update", false, "rewrite the golden files and the recordings")

// TestAnswers compares whole answers with testdata/answers: one file per time of issue, place and date.
func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, issued, now string
		in                arguments
	}{
		{"morning-today", "2026-04-15 05:00", "2026-04-15 08:30", arguments{Location: "東京"}},
		{"morning-week", "2026-04-15 05:00", "2026-04-15 08:30", arguments{Location: "東京", Date: week}},
		{"noon-today", "2026-04-15 11:00", "2026-04-15 13:00", arguments{Location: "東京", Date: today}},
		{"noon-tomorrow", "2026-04-15 11:00", "2026-04-15 13:00", arguments{Location: "大阪", Date: tomorrow}},
		{"noon-week-english", "2026-04-15 11:00", "2026-04-15 13:00", arguments{Location: "Osaka", Date: week,
			Lang: "en"}},
		{"evening-today", "2026-04-15 17:00", "2026-04-15 19:00", arguments{Location: "札幌"}},
		{"evening-tomorrow-english", "2026-04-15 17:00", "2026-04-15 19:00", arguments{Location: "Naha", Date: tomorrow,
			Lang: "en"}},
		{"evening-week", "2026-04-15 17:00", "2026-04-15 19:00", arguments{Location: "札幌", Date: week}},
		{"after-midnight-today", "2026-04-15 17:00", "2026-04-16 00:10", arguments{Location: "東京"}},
		{"after-midnight-tomorrow", "2026-04-15 17:00", "2026-04-16 04:50", arguments{Location: "東京", Date: tomorrow}},
		{"after-midnight-week", "2026-04-15 17:00", "2026-04-16 00:10", arguments{Location: "東京", Date: week}},
		{"correction-today", "2026-04-15 15:00", "2026-04-15 15:20", arguments{Location: "沖縄県"}},
		{"area-without-file", "2026-04-15 05:00", "2026-04-15 08:30", arguments{Location: "十勝", Date: week}},
		{"weekly-area-of-the-season", "2026-04-15 11:00", "2026-04-15 12:00", arguments{Location: "青森", Date: week}},
		{"station-of-the-city", "2026-04-15 11:00", "2026-04-15 12:00", arguments{Location: "郡山", Date: week}},
		{"overview", "2026-04-15 11:00", "2026-04-15 12:00", arguments{Location: "大阪市", Overview: true}},
		{"address-and-namesakes", "2026-04-15 11:00", "2026-04-15 12:00", arguments{Location: "大阪市北区", Date: tomorrow}},
		{"old-file", "2026-04-15 11:00", "2026-04-17 12:00", arguments{Location: "東京"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeJMA(t, wholeFiles(t, test.issued))
			text, _, err := ask(t, fake.url, test.in, moment(t, test.now))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", "answers", test.name+".txt"), text+"\n")
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with go test -update)", err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", path, got)
	}
}

// TestRequests checks that a call fetches no more than it needs.
func TestRequests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   arguments
		want []string
	}{
		{"prefecture", arguments{Location: "東京"}, []string{forecastFile("130000")}},
		{"capital", arguments{Location: "Sapporo"}, []string{forecastFile("016000")}},
		{"office without a file", arguments{Location: "十勝"}, []string{forecastFile("014100")}},
		{"municipality", arguments{Location: "渋谷"}, []string{areaPath, forecastFile("130000")}},
		{"overview", arguments{Location: "東京", Overview: true},
			[]string{forecastFile("130000"), overviewPath + "130000.json"}},
		{"overview of the week", arguments{Location: "札幌", Overview: true, Date: week},
			[]string{forecastFile("016000"), overviewWeekPath + "016000.json"}},
		{"abroad", arguments{Location: "New York"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeJMA(t, jma.Files(moment(t, "2026-04-15 11:00")))
			ask(t, fake.url, test.in, moment(t, "2026-04-15 12:00"))
			if got := fake.asked(); !slices.Equal(got, test.want) {
				t.Errorf("requests are %q, want %q", got, test.want)
			}
		})
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, location, lang, locale, config string
		want                                 language
	}{
		{"nothing known", "Tokyo", "", "", "", japanese},
		{"parameter", "東京", "en", "ja", "ja", english},
		{"place in Japanese", "東京", "", "en-US", "en", japanese},
		{"place in kana", "とうきょう", "", "en-US", "en", japanese},
		{"caller", "Tokyo", "", "en-US", "ja", english},
		{"caller, Japanese", "Tokyo", "", "ja-JP", "en", japanese},
		{"another language", "Tokyo", "", "fr", "", english},
		{"configured", "Tokyo", "", "", "en", english},
	}
	fake := newFakeJMA(t, jma.Files(moment(t, "2026-04-15 11:00")))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx := pdktest.Context(t, pdktest.Options{Locale: test.locale,
				Config: settings{fake.url + "/", test.config}})
			result, err := getWeather(ctx, arguments{Location: test.location, Lang: test.lang},
				moment(t, "2026-04-15 12:00"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.HasPrefix(result.Content[0].Text, "Weather forecast"); got != (test.want == english) {
				t.Errorf("answer is\n%s\nwant language %s", result.Content[0].Text, test.want)
			}
		})
	}
}

// TestTool calls the tool by its name, as the host does.
func TestTool(t *testing.T) {
	t.Parallel()
	fake := newFakeJMA(t, nil)
	response := pdktest.CallTool(t, "get_weather", arguments{Location: "東京"},
		pdktest.Options{Config: settings{BaseURL: fake.url}})
	if !response.IsError || !strings.Contains(response.Content[0].Text, "HTTP 404") {
		t.Errorf("response is %+v, want an error about HTTP 404", response)
	}
	if got, want := fake.asked(), []string{forecastFile("130000")}; !slices.Equal(got, want) {
		t.Errorf("requests are %q, want %q", got, want)
	}
}
