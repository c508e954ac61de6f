package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// rank measures how well a name fits a place; lower is better. A plain prefix search would take 横浜 for 横浜町 in Aomori
// and 津 for 津別町 in Hokkaido, so a name that only lacks its 市 goes before one that merely starts the same.
type rank int

const (
	asPrefecture rank = iota // a prefecture or office, its 都, 府, 県 or 地方 given or not
	asRegion
	asWhole // the whole name of an area, municipality or ward
	asCity  // the name of a city or of a special ward of Tokyo, without 市 or 区
	asTown  // the same of a town, village or other ward, or a name that people use for a place
	asArea
	asStation
	asAddress // a municipality or ward that the query starts with: 横浜市中区山下町
	asPrefectureStart
	asStart
	unfit

	exact    = asStation
	anywhere = asStart
)

// fit is the relation of one name to another.
type fit int

const (
	noFit fit = iota
	startFit
	longerFit // the query goes on after the name
	stemFit
	wholeFit
)

// rank returns how well q names p.
func (q query) rank(p place) rank {
	var f fit
	switch {
	case q.text == "":
		return unfit
	case q.latin != "":
		f = q.fitLatin(p)
	case q.kana != "":
		f = max(q.fitName(p), q.fitKana(p))
	default:
		f = q.fitName(p)
	}
	return p.rank(f)
}

func (p place) rank(f fit) rank {
	switch {
	case p.level == stationLevel && f != wholeFit:
		return unfit
	case p.level == stationLevel:
		return asStation
	case p.level == nicknameLevel && f != wholeFit:
		return unfit
	case p.level == nicknameLevel:
		return asTown
	case f == noFit:
		return unfit
	case f == longerFit:
		if p.kind() == "" {
			return unfit
		}
		return asAddress
	case f == startFit && p.level <= regionLevel:
		return asPrefectureStart
	case f == startFit:
		return asStart
	case p.level <= officeLevel:
		return asPrefecture
	case p.level == regionLevel:
		return asRegion
	case f == wholeFit:
		return asWhole
	}
	return p.stemRank()
}

func (p place) stemRank() rank {
	switch kind := p.kind(); {
	case kind == "市" || kind == "区" && p.level == municipalityLevel:
		return asCity
	case kind != "":
		return asTown
	}
	return asArea
}

// kind is the last character of a municipality's or ward's name if that says what it is, and otherwise "".
func (p place) kind() string {
	r, size := utf8.DecodeLastRuneInString(p.name)
	if (p.level == municipalityLevel || p.level == wardLevel) && size < len(p.name) && strings.ContainsRune("市区町村", r) {
		return string(r)
	}
	return ""
}

var (
	nameEndings = []string{"都", "府", "県", "市", "区", "町", "村", "地方", "地域", "地区", "諸島"}
	kanaEndings = []string{"と", "ふ", "けん", "し", "く", "ちょう", "まち", "むら", "そん"}
)

// stemOf returns a Japanese name without what it ends in.
func stemOf(name string) string {
	for _, ending := range nameEndings {
		if stem, ok := strings.CutSuffix(name, ending); ok && stem != "" {
			return stem
		}
	}
	return name
}

func (q query) fitName(p place) fit {
	name, text := fold(p.name), q.text
	if p.city != "" { // 札幌市北区, 札幌北区
		if rest, ok := strings.CutPrefix(text, stemOf(p.city)); ok && rest != "" && rest != "市" {
			text = strings.TrimPrefix(rest, "市")
		}
	}
	bare, _, _ := strings.Cut(name, "(")
	switch {
	case text == name || text == bare:
		return wholeFit
	case text == stemOf(bare):
		return stemFit
	case strings.HasPrefix(text, name):
		return longerFit
	case p.city == "" && utf8.RuneCountInString(text) >= 2 && strings.HasPrefix(name, text):
		return startFit
	}
	return noFit
}

func (q query) fitKana(p place) fit {
	switch {
	case p.kana == "" || !strings.HasPrefix(p.kana, q.kana):
		return noFit
	case p.kana == q.kana:
		return wholeFit
	case p.kind() != "" || p.level == prefectureLevel:
		if slices.Contains(kanaEndings, p.kana[len(q.kana):]) {
			return stemFit
		}
	}
	if q.hiragana && p.city == "" && utf8.RuneCountInString(q.kana) >= 3 { // two are the start of too many
		return startFit
	}
	return noFit
}

func (q query) fitLatin(p place) fit {
	if p.en == "" || q.stem == "" {
		return noFit
	}
	if p.level == nicknameLevel && q.latin == romaji(p.en) {
		return wholeFit
	}
	if letter(rune(p.en[0])) != q.stem[0] { // most names, and the comparison below is slow
		return noFit
	}
	stem, kind := splitKind(p.en)
	if p.level <= officeLevel && kind == "" {
		kind = "都道府県"
	}
	name := romaji(stem)
	switch {
	case p.level == wardLevel && q.kind == "市区": // "City" is a city, or one of Tokyo's wards
		return noFit
	case q.stem == name && q.kind != "" && sameKind(q.kind, kind, p.kind()):
		return wholeFit
	case q.latin == name:
		return stemFit
	case p.city == "" && len(q.latin) >= 3 && strings.HasPrefix(name, q.latin):
		return startFit
	}
	return noFit
}

// sameKind reports whether the kind that a query asks for is the place's, by its English name and, where it has one,
// its Japanese.
func sameKind(asked, kind, japanese string) bool {
	if japanese != "" {
		kind = japanese
	}
	return strings.ContainsAny(asked, kind)
}
