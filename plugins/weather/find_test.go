package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/jma"
)

func testAtlas(t testing.TB) atlas {
	t.Helper()
	table, err := parseAreas([]byte(jma.Areas()))
	if err != nil {
		t.Fatal(err)
	}
	return newAtlas(table)
}

// TestFind looks names up in the excerpt of JMA's table, which has the names that mislead a simpler search.
func TestFind(t *testing.T) {
	t.Parallel()
	all := testAtlas(t)
	tests := []struct {
		location string
		want     string // names with their class10 areas
	}{
		// Prefectures before cities, cities before towns, and none by a mere beginning.
		{"東京", "東京都 130010"}, {"東京都", "東京都 130010"}, {"京都", "京都府 260010"}, {"大阪", "大阪府 270000"}, {"大阪市", "大阪市 270000"},
		{"広島", "広島県 340010"}, {"山形", "山形県 060010"}, {"山形村", "山形村 200020"}, {"長野", "長野県 200010"},
		{"福島", "福島県 070010"}, {"福島町", "福島町 017010"}, {"横浜", "横浜市 140010"}, {"横浜町", "横浜町 020030"},
		{"川崎", "川崎市 140010"}, {"神戸", "神戸市 280010"}, {"神戸町", "神戸町 210010"}, {"津", "津市 240010"}, {"津別", "津別町 013010"},
		{"大津", "大津市 250010"}, {"大津町", "大津町 430010"}, {"仙台", "仙台市 040010"}, {"仙台市西部", "仙台市西部 040020"},
		{"沖縄", "沖縄県 471010"}, {"沖縄市", "沖縄市 471010"}, {"北海道", "北海道 016010"}, {"札幌", "札幌市 016010"}, {"草津", "草津市 250010"},
		{"東北町", "東北町 020030"}, {"渋谷", "渋谷区 130010"}, {"郡山", "郡山市 070010"}, {"大和郡山", "大和郡山市 290010"},
		{"対馬", "対馬市 420030"}, {"佐世保", "佐世保市 420020"}, {"佐世保市（宇久地域）", "佐世保市（宇久地域） 420040"},
		{"鹿児島県（奄美地方除く）", "鹿児島県（奄美地方除く） 460010"},
		// Offices, areas, stations, parts.
		{"十勝", "十勝地方 014030"}, {"奄美", "奄美地方 460040"}, {"会津", "会津 070030"}, {"父島", "父島 130040"}, {"佐渡島", "佐渡 150040"},
		{"上川", "上川・留萌地方 012010"},
		// Ambiguous names, and the ways to decide.
		{"府中", "府中市 130010, 府中市 340010"}, {"府中市", "府中市 130010, 府中市 340010"}, {"広島県府中市", "府中市 340010"},
		{"府中市(広島)", "府中市 340010"}, {"府中市（広島県）", "府中市 340010"}, {"東京 府中", "府中市 130010"}, {"広島府中", "府中市 340010"},
		{"府中町", "府中町 340010"}, {"池田町", "池田町 014030, 池田町 180010, 池田町 200010, 池田町 210010"}, {"岐阜県池田町", "池田町 210010"},
		{"Fuchu", "府中市 130010, 府中市 340010"}, {"Fuchu, Hiroshima", "府中市 340010"},
		{"Fuchu City, Tokyo, Japan", "府中市 130010"},
		{"Hiroshima Prefecture Fuchu", "府中市 340010"}, {"Yamagata City", "山形市 060010, 山県市 210010"},
		// Addresses.
		{"横浜市中区", "横浜市中区 140010"}, {"神奈川県横浜市中区山下町", "横浜市中区 140010"}, {"群馬県吾妻郡草津町", "草津町 100020"},
		{"吾妻郡草津町", "草津町 100020"},
		{"北海道札幌市中央区", "札幌市中央区 016010"}, {"広島市中区", "広島市中区 340010"}, {"東京23区", "２３区西部 130010"},
		// Scripts.
		{"よこはま", "横浜市 140010"}, {"ヨコハマ", "横浜市 140010"}, {"ﾖｺﾊﾏ", "横浜市 140010"}, {"つ", "津市 240010"},
		{"とうきょう", "東京都 130010"},
		{"こおりやま", "郡山市 070010"}, {"つしま", "津島市 230010, 対馬市 420030"}, {"ﾆｾｺ", "ニセコ町 016030"}, {"にせこ", "ニセコ町 016030"},
		{"こうへ\u3099", "神戸市 280010"}, {"ｺｳﾍﾞ", "神戸市 280010"}, {"ふくしま", "福島県 070010"}, {"Tokyo", "東京都 130010"},
		{"TOKYO", "東京都 130010"}, {"ＴＯＫＹＯ", "東京都 130010"},
		{"Tōkyō", "東京都 130010"}, {"To\u0304kyo\u0304", "東京都 130010"}, {"Toukyou", "東京都 130010"},
		{"Osaka-fu", "大阪府 270000"}, {"Osaka City", "大阪市 270000"}, {"Sapporo-shi", "札幌市 016010"},
		{"Shibuya-ku", "渋谷区 130010"}, {"Kusatsu", "草津市 250010"}, {"Kusatsu Town", "草津町 100020"},
		{"Otawara", "大田原市 090020"},
		{"Hokkaido", "北海道 016010"}, {"Okinawa Main Island", "沖縄本島地方 471010"}, {"China Town", "知名町 460040"},
		{"　東 京 ", "東京都 130010"}, {"龍ヶ崎", "龍ケ崎市 080020"}, {"竜ケ崎", "龍ケ崎市 080020"},
		// Emoji, which have variation selectors and joiners, and variants of kanji.
		{"\u2600\ufe0f札幌!", "札幌市 016010"}, {"\u2744\ufe0f 札幌 \u2603\ufe0f", "札幌市 016010"}, {"札\U000e0100幌", "札幌市 016010"},
		{"\U0001f468\u200d\U0001f469札幌\U0001f3fb", "札幌市 016010"}, {"Sapporo \u26c4\ufe0e", "札幌市 016010"},
		// Nothing.
		{"チリ", ""}, {"Iran", ""}, {"", ""}, {" ", ""}, {"、", ""}, {"()", ""}, {"市", ""}, {"県", ""},
	}
	for _, test := range tests {
		t.Run(test.location, func(t *testing.T) {
			t.Parallel()
			m := all.find(test.location, anywhere)
			var got []string
			for _, p := range m.places {
				got = append(got, p.city+p.name+" "+p.class10)
			}
			if m.sameForecast() && len(got) > 1 {
				got = got[:1]
			}
			if joined := strings.Join(got, ", "); joined != test.want {
				t.Errorf("found %q, want %q", joined, test.want)
			}
		})
	}
}

// TestBuiltin checks that the built-in table never answers otherwise than JMA's would.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	checkBuiltin(t, testAtlas(t))
}

func checkBuiltin(t *testing.T, all atlas) {
	t.Helper()
	for _, p := range builtin() {
		for _, name := range []string{p.name, stemOf(p.name), p.kana, p.en} {
			quick := builtin().find(name, exact)
			full := all.find(name, anywhere)
			if name != "" && (len(quick.places) == 0 || !quick.sameForecast() || !full.sameForecast() ||
				quick.places[0].class10 != full.places[0].class10) {
				t.Errorf("%q: the built-in table finds %v, the whole one %v", name, quick.places, full.places)
			}
		}
	}
}

func TestLocateErrors(t *testing.T) {
	t.Parallel()
	files := wholeFiles(t, "2026-04-15 11:00")
	broken := map[string]string{forecastFile("016000"): files[forecastFile("016000")], areaPath: "503"}
	tests := []struct {
		name, location, lang string
		files                map[string]string
		want                 []string
	}{
		{"ambiguous", "府中", "", files, []string{"府中市（東京都）、府中市（広島県）", "都道府県名を付けて"}},
		{"ambiguous, in English", "Fuchu", "en", files, []string{"Fuchu City (Tokyo), Fuchu City (Hiroshima)",
			"Add the prefecture"}},
		{"not found", "草津湖畔", "", files, []string{"「草津湖畔」は見つかりません", "近い名前: ", "草津市（滋賀県）", "海外は対象外"}},
		{"not found, in English", "Kusatzu", "en", files, []string{`"Kusatzu" was not found`, "Kusatsu City (Shiga)"}},
		{"abroad", "ニューヨーク", "", files, []string{"海外の地名", "日本国内だけ"}},
		{"abroad, in English", "London, UK", "en", files, []string{"outside Japan"}},
		{"abroad, though a town's name is the same", "China", "en", files,
			[]string{"outside Japan", "add its prefecture"}},
		{"a region", "中国地方", "", files, []string{"広すぎます", "鳥取県", "広島県"}},
		{"a region, in English", "Tohoku", "en", files, []string{"too large", "Miyagi"}},
		{"the country", "日本", "", files, []string{"広すぎます"}},
		{"not in a sample", "南会津町", "", jma.Files(moment(t, "2026-04-15 11:00")),
			[]string{"地域表は見本", "帯広市（北海道）", "例: 東京"}},
		{"not in a sample, in English", "Esashi, Hokkaido", "en", jma.Files(moment(t, "2026-04-15 11:00")),
			[]string{"a sample with few", "Obihiro"}},
		{"one of several places, of which a sample has one", "上野", "", jma.Files(moment(t, "2026-04-15 11:00")),
			[]string{"地域表は見本"}},
		{"no table of areas", "渋谷", "", broken, []string{"地域表を取得できません", "県庁所在地", "HTTP 503"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeJMA(t, test.files)
			text, _, err := ask(t, fake.url, arguments{Location: test.location, Lang: test.lang},
				moment(t, "2026-04-15 12:00"))
			if err == nil {
				t.Fatalf("no error but\n%s", text)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestWithoutAreaTable checks that prefectures, capitals, areas and stations are found while JMA's table cannot be had.
func TestWithoutAreaTable(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"503", "404", "{", "[]", `{"class20s":{}}`, "<html>"} {
		files := wholeFiles(t, "2026-04-15 11:00")
		files[areaPath] = table
		fake := newFakeJMA(t, files)
		_, rep, err := ask(t, fake.url, arguments{Location: "帯広"}, moment(t, "2026-04-15 12:00"))
		if err != nil {
			t.Errorf("table %q: %v", table, err)
			continue
		}
		if rep.Location.AreaCode != "014030" ||
			!slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.Contains(n, "内蔵の小さな表") }) {
			t.Errorf("table %q: location %+v, notes %q", table, rep.Location, rep.Notes)
		}
	}
}

func TestNamesakes(t *testing.T) {
	t.Parallel()
	files := wholeFiles(t, "2026-04-15 11:00")
	fake := newFakeJMA(t, files)
	_, rep, err := ask(t, fake.url, arguments{Location: "沖縄市"}, moment(t, "2026-04-15 12:00"))
	if err != nil || len(rep.Notes) != 1 {
		t.Errorf("沖縄市: notes %q, error %v; want only the one on today's low", rep.Notes, err)
	}
	m := testAtlas(t).find("草津", anywhere)
	found, err := m.decide(japanese, "草津")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"名前の似た別の場所: 草津町（群馬県）。"}; !slices.Equal(found.notes, want) {
		t.Errorf("草津: notes %q, want %q", found.notes, want)
	}
	fake = newFakeJMA(t, jma.Files(moment(t, "2026-04-15 11:00")))
	_, rep, err = ask(t, fake.url, arguments{Location: "草津"}, moment(t, "2026-04-15 12:00"))
	if err != nil || !slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.Contains(n, "地域表は見本") }) {
		t.Errorf("草津 in a sample: notes %q, error %v; want one on the sample", rep.Notes, err)
	}
}
