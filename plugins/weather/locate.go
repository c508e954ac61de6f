package main

import (
	"context"
	"slices"
	"strings"
)

// located is the place of a forecast.
type located struct {
	place
	notes []string // what the caller should know about how it was found
}

// locate finds the one place that location names. What it cannot decide is an error that names the candidates.
func locate(ctx context.Context, jma client, location string) (*located, error) {
	l := jma.lang
	if abroad(location) {
		return nil, l.errorf("「%s」は海外の地名です。気象庁の予報は日本国内だけです。国内の同じ名前の場所なら、都道府県名を付けてください（例: 大分県宇佐市）。",
			"%q is outside Japan: JMA's forecasts cover Japan only. For a place of that name in Japan, add its prefecture (for example: Usa, Oita).",
			location)
	}
	if slices.Contains([]string{"japan", "日本", "全国"}, fold(location)) {
		return nil, l.errorf("「%s」は広すぎます。都道府県か市区町村の名前で指定してください（例: 東京、札幌）。",
			"%q is too large an area. Give a prefecture, city, town or village (for example: Tokyo, Sapporo).",
			location)
	}
	if m := builtin().findLiteral(location); len(m.places) > 0 {
		return m.decide(l, location)
	}
	table, err := jma.areas(ctx)
	if err != nil {
		return locateWithout(jma, location, err)
	}
	all := newAtlas(table)
	m := all.find(location, anywhere)
	if table.excerpt() {
		return m.decideInExcerpt(l, location, all.municipalities())
	}
	if len(m.places) == 0 {
		return nil, notFound(l, location, all.nearest(location))
	}
	return m.decide(l, location)
}

// decideInExcerpt is decide for a table that lacks most municipalities. In it a name that fits loosely could be that of
// a place that the table does not have, as 上野 is a station in 三重県 and a district of 東京都.
func (m match) decideInExcerpt(l language, location string, known []place) (*located, error) {
	if len(m.places) == 0 || m.rank > asTown && m.rank != asAddress {
		return nil, l.errorf("「%s」は、ここにある地域表では決められません。地域表は見本で、市区町村の一部しかありません。都道府県・県庁所在地（例: 東京、横浜市）か、見本にある次の場所を指定してください: %s。",
			"%q cannot be found in the table of areas here, which is a sample with few municipalities. Give a prefecture, "+
				"its capital (for example: Tokyo, Yokohama), or one of the sample: %s.",
			location, listPlaces(l, known))
	}
	found, err := m.decide(l, location)
	if err == nil && m.rank > asWhole {
		found.notes = append(found.notes, l.pick("地域表は見本で、市区町村の一部しかないため、同じ名前の別の場所は調べていません。",
			"The table of areas is a sample with few municipalities: other places of this name were not looked for."))
	}
	return found, err
}

// locateWithout makes do with the built-in atlas when the table of areas cannot be had, for the reason given.
func locateWithout(jma client, location string, reason error) (*located, error) {
	l := jma.lang
	m := fallback().find(location, exact)
	if len(m.places) == 0 {
		return nil, l.errorf("「%s」を調べるための地域表を取得できません。今は都道府県・県庁所在地・予報区の名前（例: 東京、札幌）だけが使えます。%w",
			"the table of areas needed to look up %q is not available; for now only prefectures, their capitals and forecast areas can be given (for example: Tokyo, Sapporo): %w",
			location, reason)
	}
	found, err := m.decide(l, location)
	if err == nil {
		found.notes = append(found.notes, l.pick("地域表を取得できなかったため、内蔵の小さな表で場所を決めました。",
			"The table of areas was not available; the place was found in a small built-in one."))
	}
	return found, err
}

// decide returns the place that was found, or an error if that could be in several prefectures.
func (m match) decide(l language, location string) (*located, error) {
	first := m.places[0]
	if first.level == regionLevel {
		return nil, tooBroad(l, location, m.places)
	}
	if !m.sameForecast() {
		return nil, l.errorf("「%s」に当たる場所は複数あります: %s。都道府県名を付けて指定してください（例: 広島県府中市）。",
			"%q could be several places: %s. Add the prefecture (for example: Fuchu, Hiroshima).", location,
			listPlaces(l, m.places))
	}
	found := &located{place: first}
	if m.rank > exact || m.trimmed || first.stands != nil {
		found.notes = append(found.notes, l.sprintf("「%s」を%sとして調べました。", "%q was taken for %s.", location,
			first.label(l)))
	}
	if len(m.others) > 0 {
		found.notes = append(found.notes, l.sprintf("名前の似た別の場所: %s。", "Other places of a like name: %s.",
			listPlaces(l, m.others)))
	}
	return found, nil
}

func tooBroad(l language, location string, regions []place) error {
	var members []string
	for _, region := range regions {
		for _, member := range region.members {
			if title := member.title(l); !slices.Contains(members, title) {
				members = append(members, title)
			}
		}
	}
	return l.errorf("「%s」は広すぎます。次のどれかで指定してください: %s。", "%q is too large an area. Choose one of: %s.",
		location, l.list(members))
}

func notFound(l language, location string, near []place) error {
	hint := ""
	if len(near) > 0 {
		hint = l.sprintf("近い名前: %s。", " Similar names: %s.", listPlaces(l, near))
	}
	return l.errorf("「%s」は見つかりません。%s国内の都道府県・市区町村・政令指定都市の区の名前で指定してください（例: 福岡市）。駅、空港、島、地区は主なものだけです。海外は対象外です。",
		"%q was not found.%s Give a prefecture, city, ward, town or village in Japan (for example: Fukuoka). Of stations, airports, "+
			"islands and districts only well-known ones can be given; places abroad are not covered.",
		location, hint)
}

// maxListed bounds a list of places in a text.
const maxListed = 10

func listPlaces(l language, places []place) string {
	var names []string
	for _, p := range places[:min(len(places), maxListed)] {
		label := p.label(l)
		if slices.ContainsFunc(places, func(other place) bool {
			return other.class10 != p.class10 &&
				other.label(l) == label
		}) {
			area, _ := areaOf(p.class10)
			label = l.sprintf("%s・%s", "%s, %s", label, l.pick(area.name, area.en))
		}
		names = append(names, label)
	}
	if more := len(places) - maxListed; more > 0 {
		names = append(names, l.sprintf("ほか%d件", "%d more", more))
	}
	return l.list(names)
}

// label names a place with its prefecture, and a nickname with the place that it stands for.
func (p place) label(l language) string {
	n := p.prefecture()
	if n == 0 || p.level == prefectureLevel {
		return p.title(l)
	}
	where := l.pick(prefectures[n-1].name, prefectures[n-1].en)
	if p.stands != nil && p.stands.level != prefectureLevel {
		where = l.pick(where+p.stands.title(l), p.stands.title(l)+", "+where)
	}
	return l.sprintf("%s（%s）", "%s (%s)", p.title(l), where)
}

// title is a place's name in a language; the English one where there is none is the Japanese.
func (p place) title(l language) string {
	switch {
	case l == english && p.en != "" && p.city != "":
		return clean(p.en + ", " + p.cityEn)
	case l == english && p.en != "":
		return clean(p.en)
	}
	return clean(p.city + p.name)
}

// abroad reports whether location is a well-known name abroad, or several of them ("London, UK"), that would otherwise
// be searched for, or even found, in Japan.
func abroad(location string) bool {
	known := strings.Fields(namesAbroad)
	unknown := func(name string) bool {
		return !slices.Contains(known, strings.NewReplacer(" ", "", "・", "").Replace(name))
	}
	parts := split(fold(location))
	return len(parts) > 0 && (!unknown(strings.Join(parts, "")) || !slices.ContainsFunc(parts, unknown))
}

// namesAbroad are countries and cities that people ask for. Some are names in Japan, too: 知名町 is "China Town" in JMA's
// table, and 宇佐市 "Usa City".
const namesAbroad = `
	america argentina athens australia bali bangkok barcelona beijing berlin boston brazil busan cairo canada chicago china
	delhi dubai egypt england europe france germany guam hanoi hawaii helsinki hochiminh hongkong honolulu india indonesia italy jakarta
	korea kualalumpur london losangeles madrid malaysia manila melbourne mexico moscow mumbai munich newyork newzealand nice oslo
	paris philippines rome russia sanfrancisco seattle seoul shanghai shenzhen singapore spain stockholm sydney taipei taiwan thailand
	toronto uk usa unitedstates vancouver vienna vietnam washington zurich
	アメリカ イギリス イタリア インド インドネシア ウィーン エジプト オーストラリア カイロ カナダ グアム サイパン サンフランシスコ シアトル
	シカゴ シドニー ジャカルタ シンガポール スペイン ソウル タイ ドイツ ドバイ ニューヨーク ニュージーランド パリ ハノイ バリ バリ島
	バルセロナ ハワイ バンクーバー バンコク フィリピン フランス プサン ベトナム ベルリン ホーチミン ボストン ホノルル マドリード マニラ
	マレーシア ミラノ メキシコ メルボルン モスクワ ヨーロッパ ラスベガス ローマ ロサンゼルス ロシア ロンドン ワシントン
	英国 欧州 韓国 釜山 広州 香港 上海 深圳 台湾 台北 大連 米国 北京`
