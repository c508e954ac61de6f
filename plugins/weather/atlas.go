package main

import (
	"slices"
	"strings"
)

// level is the kind of a place. Lower ones go first where a name fits several.
type level int

const (
	prefectureLevel level = iota
	officeLevel
	regionLevel // several prefectures, for which there is no forecast
	areaLevel   // class10 and class15 areas
	municipalityLevel
	wardLevel     // a ward of a designated city
	nicknameLevel // a name of names.txt that is no ward
	stationLevel
)

// place is something that a user can name.
type place struct {
	level           level
	name, kana, en  string
	office, class10 string  // the forecast office and area that it is in; "" for a region
	class15         string  // the part of the area that it is in; "" if that is not known, or it is in several
	city, cityEn    string  // of a ward: the city that it belongs to
	stands          *place  // of a nickname: the place that it stands for
	members         []place // of a region: its offices
}

func (p place) prefecture() int { return prefectureOf(p.office) }

// atlas is a list of places.
type atlas []place

// builtin has the prefectures, their capitals and the offices: what can be found without JMA's table of areas.
func builtin() atlas {
	var a atlas
	for _, p := range prefectures {
		area, _ := areaOf(p.class10)
		a = append(a, place{level: prefectureLevel, name: p.name, kana: p.kana, en: p.en, office: area.office,
			class10: p.class10})
		if p.capital != "" {
			a = append(a, place{level: municipalityLevel, name: p.capital, kana: p.capitalKana, en: p.capitalEnglish,
				office: area.office, class10: p.class10})
		}
	}
	for _, o := range offices {
		a = append(a, place{level: officeLevel, name: o.name, en: o.en, office: o.code, class10: o.class10})
	}
	return a
}

// fallback is the built-in atlas with the forecast areas and stations, for when JMA's table cannot be had.
func fallback() atlas {
	a := builtin()
	for _, area := range forecastAreas {
		a = append(a, place{level: areaLevel, name: area.name, en: area.en, office: area.office, class10: area.code})
	}
	return append(a, stations()...)
}

func stations() atlas {
	var a atlas
	for _, area := range forecastAreas {
		for _, s := range area.stationList() {
			if s.name != "" {
				a = append(a, place{level: stationLevel, name: s.name, en: s.en, office: area.office,
					class10: area.code, class15: s.class15})
			}
		}
	}
	return a
}

// newAtlas has every place of JMA's table and the stations. Entries that lead to no office of a prefecture are left
// out.
func newAtlas(t *areaTable) atlas {
	office := parents(t.class10s)
	class10 := parents(t.class15s)
	a := make(atlas, 0, 1000+len(t.class20s)+len(t.class15s))
	a = append(a, builtin()...)
	a = append(a, regions(t)...)
	for _, o := range t.offices {
		if main := mainArea(o.code, t.class10s); main != "" && prefectureOf(o.code) > 0 {
			a = append(a, place{level: officeLevel, name: o.name, en: o.en, office: o.code, class10: main})
		}
	}
	add := func(level level, entry area, class10, class15 string) {
		if code := office[class10]; prefectureOf(code) > 0 {
			p := place{level: level, name: entry.name, kana: entry.kana, en: entry.en, office: code, class10: class10,
				class15: class15}
			a = append(a, p.asWard())
		}
	}
	for _, entry := range t.class10s {
		add(areaLevel, entry, entry.code, "")
	}
	for _, entry := range t.class15s {
		add(areaLevel, entry, entry.parent, entry.code)
	}
	for group := range municipalities(t.class20s) {
		if len(group) > 1 {
			add(municipalityLevel, whole(group), class10[group[0].parent], group[0].parent)
		}
		for _, entry := range group {
			add(municipalityLevel, entry, class10[entry.parent], entry.parent)
		}
	}
	a = append(a, stations()...)
	return append(a, a.nicknames()...)
}

// asWard returns the place as a ward if it is one: JMA lists the wards of one designated city, 広島市.
func (p place) asWard() place {
	city, ward, ok := strings.Cut(p.name, "市")
	if p.level != municipalityLevel || !ok || !strings.HasSuffix(ward, "区") {
		return p
	}
	cityEn, wardEn, _ := strings.Cut(p.en, " City ")
	p.level, p.city, p.cityEn, p.name, p.en = wardLevel, city+"市", cityEn, ward, wardEn
	p.kana = strings.TrimPrefix(p.kana, prefectures[p.prefecture()-1].capitalKana)
	return p
}

// nicknames returns the places of names.txt whose targets the atlas has.
func (a atlas) nicknames() atlas {
	targets := make(map[string]place, len(a))
	for _, p := range a {
		name := p.name
		if n := p.prefecture(); n > 0 && p.level > officeLevel {
			name = prefectures[n-1].name + name
		}
		if _, ok := targets[name]; !ok {
			targets[name] = p
		}
	}
	var list atlas
	for _, n := range nicknames {
		var stand []place
		for _, name := range n.targets {
			if p, ok := targets[name]; ok {
				stand = append(stand, p)
			}
		}
		if len(stand) < len(n.targets) {
			continue
		}
		p := place{level: nicknameLevel, name: n.name, kana: n.kana, en: n.en}
		switch first := stand[0]; {
		case len(stand) > 1:
			p.level, p.members = regionLevel, stand
		case n.city != "":
			p.level, p.en, p.city, p.cityEn = wardLevel, n.en+" Ward", first.name, n.city
			p.office, p.class10, p.class15 = first.office, first.class10, first.class15
		default:
			p.office, p.class10, p.class15, p.stands = first.office, first.class10, first.class15, &first
		}
		list = append(list, p)
	}
	return list
}

func parents(level []area) map[string]string {
	m := make(map[string]string, len(level))
	for _, entry := range level {
		m[entry.code] = entry.parent
	}
	return m
}

// mainArea returns the class10 area that stands for an office: the capital's, or else the first.
func mainArea(office string, class10s []area) string {
	for _, o := range offices {
		if o.code == office {
			return o.class10
		}
	}
	i := slices.IndexFunc(class10s, func(c area) bool { return c.parent == office })
	if i < 0 {
		return ""
	}
	if n := prefectureOf(office); n > 0 && slices.ContainsFunc(class10s, func(c area) bool {
		return c.parent == office && c.code == prefectures[n-1].class10
	}) {
		return prefectures[n-1].class10
	}
	return class10s[i].code
}

func regions(t *areaTable) atlas {
	var a atlas
	for _, region := range t.regions {
		p := place{level: regionLevel, name: region.name, en: region.en}
		for _, o := range t.offices {
			if o.parent == region.code {
				p.members = append(p.members, place{level: officeLevel, name: o.name, en: o.en, office: o.code})
			}
		}
		a = append(a, p)
	}
	return a
}

// municipalities yields the entries of each municipality: more than one where JMA divides it, as 仙台市 into 仙台市東部 and
// 仙台市西部. A code is the municipality's five digits and two for the part.
func municipalities(class20s []area) func(yield func([]area) bool) {
	same := func(x, y area) bool { return len(x.code) == 7 && len(y.code) == 7 && x.code[:5] == y.code[:5] }
	return func(yield func([]area) bool) {
		for start := 0; start < len(class20s); {
			end := start + 1
			for end < len(class20s) && same(class20s[start], class20s[end]) {
				end++
			}
			if !yield(class20s[start:end]) {
				return
			}
			start = end
		}
	}
}

// whole makes up the entry of a divided municipality. It lies where its first part does.
func whole(parts []area) area {
	w := parts[0]
	for _, part := range parts[1:] {
		w.name, w.kana = commonPrefix(w.name, part.name), commonPrefix(w.kana, part.kana)
	}
	w.name, _, _ = strings.Cut(w.name, "（") // 佐世保市（宇久地域を除く）
	w.en, _, _ = strings.Cut(w.en, " (")
	if i := strings.LastIndex(w.en, ", "); i >= 0 { // Kushiro, Kushiro City
		w.en = w.en[i+2:]
	}
	for _, part := range []string{"Eastern ", "Western ", "Northern ", "Southern "} {
		w.en = strings.TrimPrefix(w.en, part)
	}
	return w
}

func commonPrefix(x, y string) string {
	for i, r := range x {
		if !strings.HasPrefix(y[min(i, len(y)):], string(r)) {
			return x[:i]
		}
	}
	return x
}
