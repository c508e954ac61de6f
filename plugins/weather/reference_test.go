package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The tests in this file read what JMA really published. The payloads are not part of the project: where they are
// absent, the tests are skipped.

func referenceDir() string {
	root := cmp.Or(os.Getenv("HAKO_REFERENCE"), filepath.Join("..", "..", "..", "shared", "reference"))
	return filepath.Join(root, "data", "jma")
}

// referenceFile reads a file of JMA's payloads.
func referenceFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(referenceDir(), filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		t.Skip("JMA's payloads are not here; HAKO_REFERENCE says where they are")
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func referenceJSON(t *testing.T, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(referenceFile(t, name), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// referenceForecasts returns the names of all forecast files.
func referenceForecasts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(referenceDir(), "forecast", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("JMA's payloads are not here; HAKO_REFERENCE says where they are")
	}
	var names []string
	for _, file := range files {
		names = append(names, "forecast/"+filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file))
	}
	return names
}

// TestReferenceForecasts answers for every area of every file, at the hour of issue and, where the file is still the
// newest then, in the night after it. What the answers say is compared with the file itself, read in another way.
func TestReferenceForecasts(t *testing.T) {
	t.Parallel()
	for _, name := range referenceForecasts(t) {
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			t.Parallel()
			data := referenceFile(t, name)
			var raw rawForecast
			if err := json.Unmarshal(data, &raw); err != nil {
				t.Fatal(err)
			}
			office := filepath.Base(name)[:6]
			// Nothing but the forecast is served: the built-in tables must do.
			fake := newFakeJMA(t, map[string]string{forecastFile(office): string(data)})
			times := []time.Time{raw.reported(t)}
			if hour := raw.reported(t).Hour(); hour >= 17 {
				times = append(times, midnight(raw.reported(t)).AddDate(0, 0, 1).Add(4*time.Hour+59*time.Minute))
			}
			for _, area := range raw[0].TimeSeries[0].Areas {
				for _, now := range times {
					checkReference(t, fake.url, office, raw, area.string("area", "code"), now)
				}
			}
			if asked := fake.asked(); slices.ContainsFunc(asked, func(path string) bool { return path != forecastFile(office) }) {
				t.Errorf("requests are %q: the built-in tables do not fit", slices.Compact(asked))
			}
		})
	}
}

// rawForecast is a forecast file as maps.
type rawForecast []struct {
	ReportDatetime string
	TimeSeries     []struct {
		TimeDefines []string
		Areas       []rawArea
	}
}

type rawArea map[string]any

func (a rawArea) string(keys ...string) string {
	var v any = map[string]any(a)
	for _, key := range keys {
		v = v.(map[string]any)[key]
	}
	return v.(string)
}

func (f rawForecast) reported(t *testing.T) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, f[0].ReportDatetime)
	if err != nil {
		t.Fatal(err)
	}
	return at.In(jst)
}

// value finds a value of a series by area and time: "" if there is none.
func (f rawForecast) value(bulletin, series int, key, code string, at string) string {
	s := f[bulletin].TimeSeries[series]
	for _, area := range s.Areas {
		if area.string("area", "code") != code {
			continue
		}
		for i, define := range s.TimeDefines {
			if strings.HasPrefix(define, at) {
				return area[key].([]any)[i].(string)
			}
		}
	}
	return ""
}

// station returns the code of the first of the stations that the file has, by code or name.
func (f rawForecast) station(stations []station) string {
	for _, s := range stations {
		for _, area := range f[0].TimeSeries[2].Areas {
			if code := area.string("area", "code"); code == s.code || area.string("area", "name") == s.name {
				return code
			}
		}
	}
	return ""
}

func checkReference(t *testing.T, url, office string, raw rawForecast, class10 string, now time.Time) {
	t.Helper()
	known, ok := areaOf(class10)
	if !ok {
		t.Errorf("area %s is not built in", class10)
		return
	}
	file, err := client{base: url, lang: japanese}.forecast(t.Context(), office)
	if err != nil {
		t.Error(err)
		return
	}
	r := &reporter{lang: japanese, now: now, file: file,
		at: located{place: place{name: known.name, office: known.office, class10: class10}}}
	for _, date := range []string{today, tomorrow, week} {
		rep, err := r.answer(t.Context(), client{base: url, lang: japanese}, date)
		if err != nil {
			t.Errorf("%s at %s, %s: %v", class10, now, date, err)
			continue
		}
		text := r.text(rep)
		if !strings.Contains(text, "出典：気象庁ホームページ") || strings.Contains(text, "天気コード") {
			t.Errorf("%s, %s:\n%s", class10, date, text)
		}
		for i, d := range rep.Days {
			if want := midnight(now).AddDate(0, 0, i); date != tomorrow && d.Date != want.Format(dateLayout) {
				t.Errorf("%s, %s: day %d is %s, want %s", class10, date, i, d.Date, want.Format(dateLayout))
			}
			checkReferenceDay(t, raw, known, d)
		}
		if n := len(rep.Days); date == week && (n < 7 || n > 8) || date != week && n != 1 {
			t.Errorf("%s at %s, %s: %d days", class10, now, date, n)
		}
	}
}

func checkReferenceDay(t *testing.T, raw rawForecast, known forecastArea, d reportDay) {
	t.Helper()
	reported := raw.reported(t).Format(dateLayout)
	fail := func(what string, got, want any) {
		t.Errorf("%s on %s: %s is %v, want %v", known.code, d.Date, what, got, want)
	}
	if d.Date == reported && d.Low != nil {
		fail("the minimum of the day of the report", *d.Low, "none")
	}
	if want := raw.value(0, 0, "weathers", known.code, d.Date); want != "" &&
		strings.Join(strings.Fields(d.Weather), "") != narrowText(want) {
		fail("weather", d.Weather, want)
	}
	code := raw.station(known.stationList())
	if want := raw.value(0, 2, "temps", code, d.Date+"T09"); want != "" && celsius(d.High) != want+"°C" {
		fail("maximum", celsius(d.High), want)
	}
	if want := raw.value(0, 2, "temps", code, d.Date+"T00"); want != "" && d.Date != reported &&
		celsius(d.Low) != want+"°C" {
		fail("minimum", celsius(d.Low), want)
	}
	for _, s := range d.Slots {
		if want := raw.value(0, 1, "pops", known.code, s.From.Format("2006-01-02T15")); strconv.Itoa(s.Percent) != want {
			fail(fmt.Sprintf("the chance of rain from %s", s.From), s.Percent, want)
		}
	}
	checkReferenceWeek(t, raw, known, d, fail)
}

func checkReferenceWeek(t *testing.T, raw rawForecast, known forecastArea, d reportDay,
	fail func(what string, got, want any)) {
	t.Helper()
	area := ""
	for _, code := range strings.Fields(known.weekly) {
		if raw.value(1, 0, "weatherCodes", code, raw[1].TimeSeries[0].TimeDefines[0][:10]) != "" {
			area = code
		}
	}
	if area == "" {
		t.Errorf("%s has no weekly area", known.code)
		return
	}
	if raw.value(0, 0, "weathers", known.code, d.Date) != "" {
		return
	}
	if want := raw.value(1, 0, "weatherCodes", area, d.Date); d.WeatherCode != want {
		fail("weather code", d.WeatherCode, want)
	}
	if want := raw.value(1, 0, "pops", area, d.Date); want != "" && strconv.Itoa(*d.ChanceOfRain) != want {
		fail("chance of rain", *d.ChanceOfRain, want)
	}
	if want := raw.value(1, 0, "reliabilities", area, d.Date); d.Reliability != want {
		fail("reliability", d.Reliability, want)
	}
	if d.High == nil || d.Low == nil || d.Station == "" {
		fail("the temperatures of the week", celsius(d.High)+celsius(d.Low), "both")
	}
}

// narrowText writes a text without spaces and with narrow digits.
func narrowText(text string) string {
	return strings.Join(strings.Fields(strings.Map(narrow, text)), "")
}

// TestReferenceAreas reads JMA's whole table with encoding/json, too, and finds every municipality in it.
func TestReferenceAreas(t *testing.T) {
	t.Parallel()
	type entry struct{ Name, EnName, Kana, Parent string }
	var want struct{ Centers, Offices, Class10s, Class15s, Class20s map[string]entry }
	referenceJSON(t, "const/area.json", &want)
	table, err := parseAreas(referenceFile(t, "const/area.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, level := range map[string]struct {
		got  []area
		want map[string]entry
	}{
		"regions": {table.regions, want.Centers}, "offices": {table.offices, want.Offices},
		"class10s": {table.class10s, want.Class10s},
		"class15s": {table.class15s, want.Class15s}, "class20s": {table.class20s, want.Class20s},
	} {
		if len(level.got) != len(level.want) {
			t.Errorf("%d %s, want %d", len(level.got), name, len(level.want))
		}
		for _, a := range level.got {
			if w := level.want[a.code]; w != (entry{a.name, a.en, a.kana, a.parent}) {
				t.Errorf("%s %s is %+v, want %+v", name, a.code, a, w)
			}
		}
	}
	all := newAtlas(table)
	checkBuiltin(t, all)
	for code, m := range want.Class20s {
		class10 := want.Class15s[m.Parent].Parent
		prefecture := prefectures[prefectureOf(want.Class10s[class10].Parent)-1].name
		found := all.find(prefecture+m.Name, anywhere)
		if !slices.ContainsFunc(found.places, func(p place) bool {
			return p.class10 == class10 &&
				p.city+p.name == m.Name
		}) || !found.sameForecast() {
			t.Errorf("%s (%s) is found as %v", prefecture+m.Name, code, found.places)
		}
	}
}

// TestReferenceTables compares the built-in tables with JMA's.
func TestReferenceTables(t *testing.T) {
	t.Parallel()
	var areas struct {
		Class10s, Offices map[string]struct{ Name, EnName, Parent string }
	}
	referenceJSON(t, "const/area.json", &areas)
	var stations map[string][]struct {
		Class10 string
		Amedas  []string
	}
	referenceJSON(t, "const/forecast_area.tsukumijima-2026-08.json", &stations)
	amedas := map[string][]string{}
	for _, list := range stations {
		for _, area := range list {
			amedas[area.Class10] = area.Amedas
		}
	}
	var weekly map[string][]string
	referenceJSON(t, "const/week_area05.json", &weekly)
	if len(forecastAreas) != len(areas.Class10s) {
		t.Errorf("%d areas are built in, want %d", len(forecastAreas), len(areas.Class10s))
	}
	for _, a := range forecastAreas {
		w := areas.Class10s[a.code]
		if a.name != w.Name || a.en != w.EnName || a.office != w.Parent {
			t.Errorf("area %+v, want %+v", a, w)
		}
		var codes []string
		for _, s := range a.stationList() {
			codes = append(codes, s.code)
		}
		if !slices.Equal(codes, amedas[a.code]) || !slices.Equal(strings.Fields(a.weekly), weekly[a.code]) {
			t.Errorf("area %s has stations %q and weekly areas %q, want %q and %q", a.code, codes, a.weekly,
				amedas[a.code], weekly[a.code])
		}
	}
	for _, o := range offices {
		if w := areas.Offices[o.code]; o.name != w.Name || o.en != w.EnName {
			t.Errorf("office %+v, want %+v", o, w)
		}
	}
	for code, o := range areas.Offices {
		p := prefectures[prefectureOf(code)-1]
		if !slices.ContainsFunc(offices, func(own office) bool { return own.code == code }) &&
			(p.name != o.Name || p.en != o.EnName) {
			t.Errorf("office %s is %s (%s), want %s (%s)", code, p.name, p.en, o.Name, o.EnName)
		}
	}
}

func TestReferenceTelops(t *testing.T) {
	t.Parallel()
	var want map[string][]string
	referenceJSON(t, "const/forecast_telops.json", &want)
	got := map[string]string{}
	for _, telop := range telops {
		got[telop.code] = telop.ja
	}
	if len(got) != len(want) {
		t.Errorf("%d codes, want %d", len(got), len(want))
	}
	for _, code := range slices.Sorted(maps.Keys(want)) {
		if got[code] != want[code][3] {
			t.Errorf("code %s says %q, want %q", code, got[code], want[code][3])
		}
	}
}

// TestReferenceStations asks for the station of every municipality, in a file that has all stations of its class10
// area. If one of them stands in the municipality's class15 area, it is one of those.
func TestReferenceStations(t *testing.T) {
	t.Parallel()
	var areas struct {
		Class15s, Class20s map[string]struct{ Name, Parent string }
	}
	referenceJSON(t, "const/area.json", &areas)
	table, err := parseAreas(referenceFile(t, "const/area.json"))
	if err != nil {
		t.Fatal(err)
	}
	// Where stations stand is worked out anew: in the municipality that they are named after, or in one that is told
	// here.
	elsewhere := map[string]string{
		"古川": "大崎市", "鷹巣": "北秋田市", "小名浜": "いわき市", "若松": "会津若松市", "田島": "南会津町", "津川": "阿賀町", "網代": "熱海市",
		"石廊崎": "南伊豆町", "浜松": "浜松市南部", "上野": "伊賀市", "池田": "三好市", "油津": "日南市", "名瀬": "奄美市", "沖永良部": "和泊町",
	}
	class15Of := func(station, class10 string) (found string) {
		for _, m := range areas.Class20s {
			in := areas.Class15s[m.Parent].Parent == class10
			town, told := elsewhere[station]
			if in && (told && strings.HasPrefix(m.Name, town) || !told && strings.HasPrefix(m.Name, station)) &&
				(found == "" || m.Parent < found) {
				found = m.Parent
			}
		}
		return found
	}
	asked, wrong := 0, 0
	for _, p := range newAtlas(table) {
		if p.level != municipalityLevel || p.class15 == "" {
			continue
		}
		known, _ := areaOf(p.class10)
		if len(known.stationList()) < 2 {
			continue
		}
		var temperatures series
		inArea := map[string]bool{} // the names of the stations in the place's class15 area
		for _, s := range known.stationList() {
			if s.name == "" {
				continue
			}
			temperatures.Areas = append(temperatures.Areas, areaValues{Area: areaName{s.name, s.code},
				Temps: []string{"1"}})
			if class15Of(s.name, p.class10) == p.class15 {
				inArea[s.name] = true
			}
		}
		file := &forecast{short: bulletin{Series: []series{temperatures}}}
		got := temperatures.area(chooser{file: file}.choose(t.Context(), p).station).Area.Name
		if asked++; len(inArea) > 0 && !inArea[got] {
			wrong++
			t.Errorf("%s gets the temperatures of %s, want one of %v", p.name, got, inArea)
		}
	}
	t.Logf("%d municipalities in areas with several stations, %d with temperatures from another class15 area", asked,
		wrong)
	if asked < 300 {
		t.Errorf("only %d municipalities", asked)
	}
}

// TestReferenceNames looks up what people type in JMA's whole table: a place, the places that it asks back about, or
// none.
func TestReferenceNames(t *testing.T) {
	t.Parallel()
	table, err := parseAreas(referenceFile(t, "const/area.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := newAtlas(table)
	for location, want := range map[string]string{
		// An exact name goes before one that was trimmed or padded.
		"津島": "津島市（愛知県）", "横浜": "横浜市（神奈川県）", "清水市": "清水市（静岡県静岡市）", "佐渡島": "佐渡（新潟県）",
		"上野": "上野村（群馬県） | 上野（東京都台東区）", "嵐山": "嵐山町（埼玉県） | 嵐山（京都府京都市）",
		"若松": "北九州市若松区（福岡県） | 若松（福島県会津若松市）", "川内": "川内村（福島県） | 川内（鹿児島県薩摩川内市）",
		"大宮": "さいたま市大宮区（埼玉県）", "Miyake": "三宅村（東京都） | 三宅町（奈良県）", "Chuo": "中央区（東京都） | 中央市（山梨県）",
		"中区": "広島市中区（広島県） | 横浜市中区（神奈川県） | 名古屋市中区（愛知県） | 堺市中区（大阪府） | 岡山市中区（岡山県）",
		// What says where.
		"Esashi, Hokkaido": "江差町（北海道） | 枝幸町（北海道）", "Esashi, Hiyama Region": "江差町（北海道）", "Esashi, Soya": "枝幸町（北海道）",
		"Kita-ku, Sapporo": "札幌市北区（北海道）", "札幌 北区": "札幌市北区（北海道）", "Naka Ward, Yokohama": "横浜市中区（神奈川県）",
		"京都市伏見区": "京都市伏見区（京都府）", "神戸市中央区三宮町": "神戸市中央区（兵庫県）", "福岡県博多": "福岡市博多区（福岡県）",
		// Two kana or the midst of a word are too little.
		"ここ": "", "やま": "", "田中": "",
		// Names that people use.
		"博多": "福岡市博多区（福岡県）", "難波": "難波（大阪府大阪市）", "梅田": "梅田（大阪府大阪市）", "銀座": "銀座（東京都中央区）",
		"浅草": "浅草（東京都台東区）", "浦和": "さいたま市浦和区（埼玉県）", "小倉": "小倉（福岡県北九州市）", "ぎんざ": "銀座（東京都中央区）",
		"東京駅": "東京駅（東京都千代田区）", "Haneda": "羽田（東京都大田区）", "Haneda Airport": "羽田空港（東京都大田区）", "羽田": "羽田（東京都大田区）",
		"成田空港": "成田空港（千葉県成田市）", "京都駅": "京都府", "伊豆大島": "伊豆大島（東京都大島町）", "奄美大島": "奄美大島（鹿児島県奄美市）",
		"西表島": "西表島（沖縄県竹富町）", "宮島": "宮島（広島県廿日市市）", "信州": "信州（長野県）", "Shinshu": "信州（長野県）",
		// Regions are too large, and name their parts.
		"関西": "関西 | 関西地方", "甲信越": "甲信越", "道東": "道東", "関東": "関東 | 関東地方",
		// Spellings.
		"廣島": "広島県", "横濱": "横浜市（神奈川県）", "Sizuoka": "静岡県", "Hukuoka": "福岡県", "Titibu": "秩父市（埼玉県）",
		"🌸東京🌸": "東京都", "「京都」": "京都府", "東京！": "東京都", "大阪。": "大阪府",
	} {
		var labels []string
		for _, p := range all.find(location, anywhere).places {
			labels = append(labels, p.label(japanese))
		}
		if got := strings.Join(labels, " | "); got != want {
			t.Errorf("%s is %q, want %q", location, got, want)
		}
	}
	if m := all.find("関東", anywhere); len(m.places[0].members) != 7 {
		t.Errorf("関東 has %d prefectures, want 7: 山梨 and 長野 are not of it", len(m.places[0].members))
	}
	if _, err := all.find("Esashi, Hokkaido", anywhere).decide(english, "Esashi, Hokkaido"); err == nil ||
		!strings.Contains(err.Error(), "Esashi Town (Hokkaido), Hiyama Region") || !strings.Contains(err.Error(),
		"Soya Region") {
		t.Errorf("Esashi: %v", err)
	}
	for typed, want := range map[string]string{"Toyko": "東京都", "Oska": "大阪府", "ふくおた": "福岡県", "田中": "", "やま": ""} {
		var names []string
		for _, p := range all.nearest(typed) {
			names = append(names, p.name)
		}
		if want != "" && (len(names) == 0 || names[0] != want) {
			t.Errorf("%s suggests %q, want %s first", typed, names, want)
		}
	}
}
