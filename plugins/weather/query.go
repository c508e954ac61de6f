package main

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// query is a name to look for, in the scripts that it can be compared in.
type query struct {
	text     string // folded, without spaces
	kana     string // in hiragana, if it is kana alone
	hiragana bool   // it was typed in hiragana: katakana alone is more likely a foreign name
	latin    string // in romaji, if it is Latin
	stem     string // latin without "City", "-shi" and the like
	kind     string // what that said: the last character of the Japanese name
}

// newQuery takes a folded name.
func newQuery(name string) query {
	q := query{text: strings.Join(strings.Fields(name), "")}
	switch {
	case q.text == "":
	case strings.IndexFunc(q.text, func(r rune) bool { return !isKana(r) }) < 0:
		q.kana = strings.Map(hiragana, q.text)
		q.hiragana = q.kana == q.text
	case strings.IndexFunc(q.text, unicode.IsLetter) >= 0 && !hasJapanese(q.text):
		q.latin = romaji(q.text)
		stem, kind := splitKind(name)
		q.stem, q.kind = romaji(stem), kind
	}
	return q
}

// hepburn spells Kunrei romaji, as Sizuoka, the way JMA does. What is Hepburn already stays.
var hepburn = strings.NewReplacer("chu", "chu", "shu", "shu", "hu", "fu", "si", "shi", "sy", "sh", "tti", "tchi", "ti",
	"chi", "tty", "tch",
	"ty", "ch", "tsu", "tsu", "ttu", "ttsu", "tu", "tsu", "zi", "ji", "zy", "j", "di", "ji", "du", "zu")

func hasJapanese(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return isKana(r) || unicode.Is(unicode.Han, r) }) >= 0
}

// kinds are the last words of English names, and of Japanese ones in Latin letters, with what they end in in Japanese.
var kinds = [...]struct{ word, kind string }{
	{"city", "市区"}, {"shi", "市"}, {"ward", "区"}, {"ku", "区"}, {"town", "町"}, {"cho", "町"}, {"machi", "町"},
	{"village", "村"},
	{"mura", "村"}, {"son", "村"}, {"prefecture", "都道府県"}, {"ken", "県"}, {"fu", "府"}, {"to", "都"},
	{"metropolis", "都"}, {"region", "域"}, {"area", "域"}, {"district", "域"}, {"islands", "域"}, {"island", "域"},
}

// splitKind splits the last word off a Latin name if it is one of the kinds.
func splitKind(name string) (stem, kind string) {
	name = strings.ToLower(name)
	i := strings.LastIndexAny(name, " -")
	if i <= 0 {
		return name, ""
	}
	for _, k := range kinds {
		if name[i+1:] == k.word {
			return name[:i], k.kind
		}
	}
	return name, ""
}

// reading is one way to understand what a user wrote: a name within bounds that must be found with a rank of at most
// max.
type reading struct {
	query   query
	within  bounds
	max     rank
	trimmed bool // something that was written is left out
}

// bounds is the region in which a place must lie. The zero value is anywhere.
type bounds struct {
	prefecture int    // its number, or 0
	city       string // of which the place is a ward, or ""
	class10    string // or ""
}

func (b bounds) has(p place) bool {
	return (b.prefecture == 0 || p.prefecture() == b.prefecture) && (b.city == "" || p.city == b.city) &&
		(b.class10 == "" || p.class10 == b.class10)
}

// readings returns the ways to understand a location, the likeliest first. It accepts a prefecture, a city or a
// forecast area before or after the name, with or without a separator, a district (吾妻郡草津町), an island named like its
// town (佐渡島), the station or airport of a place, and "Japan" at the end.
func (a atlas) readings(location string) []reading {
	location = strings.TrimFunc(fold(location), isDecoration)
	parts := split(location)
	whole := strings.Join(parts, " ")
	joined, unsplit := newQuery(whole).text, newQuery(location).text
	var list []reading
	add := func(name string, within bounds, max rank, trimmed bool) {
		if r := (reading{newQuery(name), within, max, trimmed}); r.query.text != "" && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	anywhereIn := bounds{}
	add(location, anywhereIn, exact, false)
	add(whole, anywhereIn, exact, false)
	add(hepburn.Replace(location), anywhereIn, exact, false)
	if n, rest := qualified(parts); n > 0 {
		add(rest, bounds{prefecture: n}, anywhere, false)
		add(afterDistrict(rest), bounds{prefecture: n}, exact, true)
	}
	for _, q := range a.qualifiers(parts) {
		add(q.rest, q.within, exact, false)
	}
	for i, p := range prefectures {
		if rest, ok := strings.CutPrefix(unsplit, p.name); ok {
			add(rest, bounds{prefecture: i + 1}, exact, false)
		}
		if rest, ok := strings.CutPrefix(joined, p.name); ok {
			add(rest, bounds{prefecture: i + 1}, anywhere, false)
			add(afterDistrict(rest), bounds{prefecture: i + 1}, exact, true)
		}
	}
	if rest := afterDistrict(joined); rest != joined {
		add(rest, anywhereIn, exact, true)
	}
	for _, ending := range []string{"島", "駅", "空港", "温泉", "station", "airport", "onsen"} {
		if rest, ok := strings.CutSuffix(whole, ending); ok {
			add(strings.TrimSpace(rest), anywhereIn, exact, true)
		}
	}
	add(whole, anywhereIn, anywhere, true)
	for i, p := range prefectures {
		if rest, ok := strings.CutPrefix(joined, stemOf(p.name)); ok {
			add(rest, bounds{prefecture: i + 1}, asStart, true)
		}
	}
	return list
}

// isDecoration reports whether r says nothing at the start or end of a name: punctuation and emoji.
func isDecoration(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '(' && r != ')'
}

// qualifier is a part of what was written that says where the rest lies.
type qualifier struct {
	rest   string
	within bounds
}

// qualifiers returns the readings in which one of the parts names a city, for one of its wards, or a forecast area.
func (a atlas) qualifiers(parts []string) []qualifier {
	if len(parts) < 2 {
		return nil
	}
	var list []qualifier
	for i, part := range parts {
		q, rest := newQuery(part), strings.Join(slices.Delete(slices.Clone(parts), i, i+1), " ")
		for _, p := range a {
			found := qualifier{rest: rest}
			switch {
			case p.city != "" && (q.text == p.city || q.text == stemOf(p.city) || q.latin != "" &&
				q.stem == romaji(p.cityEn)):
				found.within.city = p.city
			case p.level == areaLevel && q.rank(p) <= exact:
				found.within.class10 = p.class10
			default:
				continue
			}
			if !slices.Contains(list, found) {
				list = append(list, found)
			}
		}
	}
	return list
}

// split cuts a folded location at commas and brackets, or else at spaces, and leaves out Japan.
func split(location string) []string {
	parts := strings.FieldsFunc(location, func(r rune) bool { return strings.ContainsRune(",、。()[]/「」『』", r) })
	if len(parts) == 1 {
		parts = strings.Fields(parts[0])
	}
	var kept []string
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part != "" && (len(parts) == 1 || !slices.Contains([]string{"japan", "jp", "日本", "prefecture"}, part)) {
			kept = append(kept, part)
		}
	}
	return kept
}

// qualified returns the prefecture that one of the parts names, and the other parts.
func qualified(parts []string) (prefecture int, rest string) {
	if len(parts) < 2 {
		return 0, ""
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if n := prefectureNamed(newQuery(parts[i])); n > 0 {
			return n, strings.Join(slices.Delete(slices.Clone(parts), i, i+1), " ")
		}
	}
	return 0, ""
}

func prefectureNamed(q query) int {
	for i, p := range prefectures {
		if q.rank(place{level: prefectureLevel, name: p.name, kana: p.kana, en: p.en}) <= exact {
			return i + 1
		}
	}
	return 0
}

// afterDistrict returns what follows a district (郡) in an address.
func afterDistrict(name string) string {
	if i := strings.Index(name, "郡"); i > 0 && utf8.RuneCountInString(name[i:]) > 2 {
		return name[i+len("郡"):]
	}
	return name
}
