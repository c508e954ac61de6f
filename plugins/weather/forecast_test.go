package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/jma"
)

// edit changes a made-up file of Tokyo's as JSON, and returns its text.
func edit(t *testing.T, issued time.Time, change func(short, week map[string]any)) string {
	t.Helper()
	var file []map[string]any
	if err := json.Unmarshal([]byte(jma.Forecast("130000", issued)), &file); err != nil {
		t.Fatal(err)
	}
	change(file[0], file[1])
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// values returns an area's values in one of a bulletin's series.
func values(bulletin map[string]any, series, area int) map[string]any {
	return bulletin["timeSeries"].([]any)[series].(map[string]any)["areas"].([]any)[area].(map[string]any)
}

func setArea(v map[string]any, name, code string) {
	v["area"] = map[string]any{"name": name, "code": code}
}

// TestOddFiles feeds files that JMA might send one day: the answer must leave out what is missing, and say nothing
// wrong.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	issued := moment(t, "2026-04-15 11:00")
	tests := []struct {
		name   string
		date   string
		change func(short, week map[string]any)
		want   []string
	}{
		{"an unknown weather code", week, func(_, week map[string]any) {
			values(week, 0, 0)["weatherCodes"].([]any)[3] = "999"
		}, []string{"4月19日（日）: （天気コード999）、"}},
		{"missing values", tomorrow, func(short, _ map[string]any) {
			values(short, 2, 0)["temps"].([]any)[2] = ""
			values(short, 1, 0)["pops"].([]any)[3] = ""
		}, []string{"最高気温 14°C / 最低気温 —", "降水確率: 0〜6時 50%、12〜18時 40%、18〜24時 50%"}},
		{"a null", tomorrow, func(short, _ map[string]any) {
			values(short, 2, 0)["temps"].([]any)[3] = nil
		}, []string{"最高気温 — / 最低気温 3°C"}},
		{"values that are no numbers", tomorrow, func(short, _ map[string]any) {
			values(short, 2, 0)["temps"] = []any{"12", "12", "///", "99999999999999999999"}
			values(short, 1, 0)["pops"] = []any{"10", "10", "-10", "1000", "x", " "}
		}, []string{"最高気温 — / 最低気温 —", "傘: 念のため"}},
		{"short arrays", tomorrow, func(short, _ map[string]any) {
			values(short, 0, 0)["weathers"] = []any{"晴れ"}
			values(short, 0, 0)["winds"] = []any{}
			values(short, 2, 0)["temps"] = []any{"12"}
		}, []string{"明日 4月16日（木）: 曇一時雨、最高気温 — / 最低気温 —"}},
		{"long arrays", tomorrow, func(short, _ map[string]any) {
			v := values(short, 2, 0)
			v["temps"] = append(v["temps"].([]any), "50", "60")
		}, []string{"最高気温 14°C / 最低気温 3°C"}},
		{"series in another order", tomorrow, func(short, _ map[string]any) {
			s := short["timeSeries"].([]any)
			s[0], s[2] = s[2], s[0]
		}, []string{"くもり 昼過ぎ 一時 雨、最高気温 14°C / 最低気温 3°C"}},
		{"areas in another order", tomorrow, func(short, _ map[string]any) {
			for _, s := range short["timeSeries"].([]any) {
				areas := s.(map[string]any)["areas"].([]any)
				areas[0], areas[3] = areas[3], areas[0]
			}
		}, []string{"東京都（東京地方）", "最高気温 14°C / 最低気温 3°C"}},
		{"no weekly bulletin", week, func(_, week map[string]any) { clear(week) },
			[]string{"明日 4月16日（木）", "4月17日（金）: 雨、最高気温 — / 最低気温 —、降水確率 —"}},
		{"no temperatures", today, func(short, _ map[string]any) {
			short["timeSeries"] = short["timeSeries"].([]any)[:2]
		}, []string{"最高気温 — / 最低気温 —"}},
		{"a station with a new code", tomorrow, func(short, _ map[string]any) {
			setArea(values(short, 2, 0), "東京", "44999")
		}, []string{"最高気温 14°C / 最低気温 3°C", "気温の地点: 東京"}},
		{"a station with a new code and name", tomorrow, func(short, _ map[string]any) {
			setArea(values(short, 2, 0), "新宿", "44999")
		}, []string{"最高気温 14°C / 最低気温 3°C", "気温の地点: 新宿"}},
		{"an area with a new code", tomorrow, func(short, _ map[string]any) {
			setArea(values(short, 0, 0), "東京地方", "130011")
			setArea(values(short, 1, 0), "東京地方", "130011")
		}, []string{"東京都（東京地方）", "最高気温 14°C / 最低気温 3°C"}},
		{"another weekly area", week, func(_, week map[string]any) {
			setArea(values(week, 0, 0), "東京都", "139999")
		}, []string{"明日 4月16日（木）"}},
		{"none of the areas known", tomorrow, func(short, _ map[string]any) {
			for i := range 4 {
				setArea(values(short, 0, i), fmt.Sprint("新区", i), fmt.Sprint("13900", i))
			}
		}, []string{"東京都（新区0）", "この場所の予報区が予報にないため、新区0の予報を示します", "明日 4月16日（木）: くもり 昼過ぎ 一時 雨"}},
		{"a control character", tomorrow, func(short, _ map[string]any) {
			values(short, 0, 0)["winds"].([]any)[1] = "北の風\n\x1b[31m後"
		}, []string{"風: 北の風 [31m後\n"}},
		{"a very long text", tomorrow, func(short, _ map[string]any) {
			values(short, 0, 0)["winds"].([]any)[1] = strings.Repeat("北", 100_000)
		}, []string{strings.Repeat("北", 200) + "…\n"}},
		{"times that cannot be read", tomorrow, func(short, _ map[string]any) {
			short["timeSeries"].([]any)[2].(map[string]any)["timeDefines"] = []any{"", "soon",
				"2026-04-16T00:00:00+09:00"}
		}, []string{"最高気温 — / 最低気温 3°C"}},
		{"a minimum of the day of the report, not quite at midnight", today, func(short, _ map[string]any) {
			short["timeSeries"].([]any)[2].(map[string]any)["timeDefines"].([]any)[1] = "2026-04-15T00:30:00+09:00"
		}, []string{"最高気温 12°C / 最低気温 —"}},
		{"times in another zone", tomorrow, func(short, _ map[string]any) {
			short["timeSeries"].([]any)[2].(map[string]any)["timeDefines"] =
				[]any{"2026-04-15T00:00:00Z", "2026-04-14T15:00:00Z", "2026-04-15T15:00:00Z", "2026-04-16T00:00:00Z"}
		}, []string{"最高気温 14°C / 最低気温 3°C"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeJMA(t, map[string]string{forecastFile("130000"): edit(t, issued, test.change)})
			text, _, err := ask(t, fake.url, arguments{Location: "東京", Date: test.date}, issued.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("answer does not say %q:\n%s", want, text)
				}
			}
		})
	}
}

// TestJMATables checks that JMA's own tables decide where the built-in ones do not fit the file.
func TestJMATables(t *testing.T) {
	t.Parallel()
	issued := moment(t, "2026-04-15 11:00")
	file := edit(t, issued, func(short, week map[string]any) {
		setArea(values(short, 2, 0), "新しい地点", "44001") // not where Tokyo's area stands
		setArea(values(short, 2, 1), "新宿", "44002")
		setArea(values(week, 0, 0), "伊豆", "139998")
		setArea(values(week, 0, 1), "東京", "139999")
	})
	fake := newFakeJMA(t, map[string]string{
		forecastFile("130000"): file,
		stationPath:            `{"130000":[{"class10":"130010","amedas":["44000","44002"]}]}`,
		weekAreaPath:           `{"130010":["130000","139999"]}`,
	})
	text, rep, err := ask(t, fake.url, arguments{Location: "東京", Date: week}, issued.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if d := rep.Days[1]; d.Station != "新宿" || *d.High != 15 || *d.Low != 4 {
		t.Errorf("tomorrow's temperatures are not the second station's:\n%s", text)
	}
	if d := rep.Days[3]; d.WeatherCode != "203" || d.Reliability != "A" {
		t.Errorf("the week is not the second area's:\n%s", text)
	}
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	whole := jma.Forecast("130000", moment(t, "2026-04-15 11:00"))
	tests := []struct {
		name, file string
		ja, en     string
	}{
		{"not found", "404", "HTTP 404", "moved"},
		{"too many requests", "429", "数分おいて", "limiting requests"},
		{"server error", "500", "HTTP 500", "temporarily unavailable"},
		{"unavailable", "503", "数分おいて", "Try again"},
		{"forbidden", "403", "base_url", "HTTP 403"},
		{"empty", "", "想定した形", "expected shape"},
		{"truncated", whole[:len(whole)/2], "想定した形", "expected shape"},
		{"a web page", "<!DOCTYPE html><html></html>", "想定した形", "expected shape"},
		{"no bulletins", "[]", "想定した形", "no forecast"},
		{"another shape", `{"forecast":[]}`, "想定した形", "cannot unmarshal object"},
		{"numbers for texts", strings.ReplaceAll(whole, `"14"`, `14`), "想定した形", "cannot unmarshal number"},
		{"no areas", `[{"reportDatetime":"2026-04-15T11:00:00+09:00","timeSeries":[]}]`, "想定した形", "no forecast"},
		{"no time of issue", `[{"timeSeries":[{"areas":[{"weatherCodes":["100"]}]}]}]`, "想定した形", "time of issue"},
		{"too deep", strings.Repeat("[", 20_000), "想定した形", "expected shape"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeJMA(t, map[string]string{forecastFile("130000"): test.file})
			for lang, want := range map[string]string{"ja": test.ja, "en": test.en} {
				_, _, err := ask(t, fake.url, arguments{Location: "東京", Lang: lang}, moment(t, "2026-04-15 12:00"))
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "127.0.0.1") {
					t.Errorf("error is %v, want %q in it and no address", err, want)
				}
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	_, _, err := ask(t, "http://127.0.0.1:1/bosai", arguments{Location: "東京"}, moment(t, "2026-04-15 12:00"))
	if err == nil || !strings.Contains(err.Error(), "取得できません") || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("error is %v", err)
	}
}

func TestDayNotCovered(t *testing.T) {
	t.Parallel()
	fake := newFakeJMA(t, jma.Files(moment(t, "2026-04-15 11:00")))
	for _, now := range []string{"2026-05-01 12:00", "2026-04-01 12:00"} {
		_, _, err := ask(t, fake.url, arguments{Location: "東京"}, moment(t, now))
		if err == nil || !strings.Contains(err.Error(), "2026年4月15日11時00分発表") {
			t.Errorf("at %s the error is %v, want one that says when the file was issued", now, err)
		}
	}
}

func TestOverviewIsOptional(t *testing.T) {
	t.Parallel()
	files := jma.Files(moment(t, "2026-04-15 11:00"))
	for name, overview := range map[string]string{"missing": "404", "truncated": `{"text":`} {
		files[overviewPath+"130000.json"] = overview
		fake := newFakeJMA(t, files)
		text, rep, err := ask(t, fake.url, arguments{Location: "東京", Overview: true}, moment(t, "2026-04-15 12:00"))
		if err != nil || rep.Overview != nil || !strings.Contains(text, "天気概況はありません") {
			t.Errorf("%s: error %v, answer\n%s", name, err, text)
		}
	}
}

func TestUmbrella(t *testing.T) {
	t.Parallel()
	noon := moment(t, "2026-04-15 12:00")
	slots := func(percents ...int) (s []slot) {
		for i, p := range percents {
			s = append(s, slot{noon.Add(time.Duration(i-1) * slotLength), p})
		}
		return s
	}
	percent := func(n int) *int { return &n }
	tests := []struct {
		name string
		day  day
		want string
	}{
		{"certain", day{slots: slots(0, 100)}, umbrellaYes},
		{"half", day{slots: slots(0, 50)}, umbrellaYes},
		{"perhaps", day{slots: slots(0, 30)}, umbrellaMaybe},
		{"unlikely", day{slots: slots(0, 20, 10)}, umbrellaNo},
		{"rain in places", day{text: "晴れ 所により 夜遅く 雨", slots: slots(0, 20)}, umbrellaMaybe},
		{"the rain is over", day{text: "雨 昼前 から 晴れ", slots: slots(90, 10)}, umbrellaNo},
		{"of the whole day", day{code: "300", rain: percent(60)}, umbrellaYes},
		{"slots before the whole day", day{rain: percent(60), slots: slots(0, 10)}, umbrellaNo},
		{"snow without a chance", day{code: "400"}, umbrellaMaybe},
		{"clear without a chance", day{code: "100"}, ""},
	}
	for _, test := range tests {
		if got := test.day.umbrella(noon); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestRegions checks that every office has one of the eleven overviews for the week.
func TestRegions(t *testing.T) {
	t.Parallel()
	want := map[string]string{"014100": "016000", "020000": "040000", "070000": "040000", "080000": "130000",
		"140000": "130000",
		"150000": "150000", "180000": "150000", "190000": "130000", "200000": "130000", "210000": "230000",
		"240000": "230000",
		"250000": "270000", "300000": "270000", "310000": "340000", "340000": "340000", "350000": "400000",
		"360000": "370000",
		"390000": "370000", "400000": "400000", "440000": "400000", "450000": "460100", "460100": "460100",
		"474000": "471000"}
	for office, region := range want {
		if got := regionOf(office); got != region {
			t.Errorf("the region of %s is %s, want %s", office, got, region)
		}
	}
	if got := fmt.Sprint(prefectureOf(""), prefectureOf("1"), prefectureOf("x10000"), prefectureOf("990000"), prefectureOf("470000")); got != "0 0 0 0 47" {
		t.Errorf("prefectures are %s", got)
	}
}
