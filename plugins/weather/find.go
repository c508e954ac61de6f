package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// match is the result of a search: the places that a name fits best, and others whose name it is as well.
type match struct {
	places []place
	others []place
	rank   rank
	// trimmed reports whether a part of the given text was left out.
	trimmed bool
}

// find returns the places that location names with a rank of at most max. Of several ways to read it, the first that
// finds something counts.
func (a atlas) find(location string, max rank) match {
	for _, r := range a.readings(location) {
		if m := a.best(r); m.rank <= min(max, r.max) {
			return m
		}
	}
	return match{rank: unfit}
}

// findLiteral is find for what is written in full, as "東京" or "Naha, Okinawa" is: nothing is left out or added.
func (a atlas) findLiteral(location string) match {
	for _, r := range a.readings(location) {
		if m := a.best(r); !r.trimmed && m.rank <= exact {
			return m
		}
	}
	return match{rank: unfit}
}

// best returns the places that fit a reading best.
func (a atlas) best(reading reading) match {
	m := match{rank: unfit, trimmed: reading.trimmed}
	for _, p := range a {
		if !reading.within.has(p) {
			continue
		}
		switch r := reading.query.rank(p); {
		case r == unfit:
		case r < m.rank:
			if m.rank <= exact {
				m.others = append(m.others, m.places...)
			}
			m.places, m.rank = []place{p}, r
		case r == m.rank:
			m.places = append(m.places, p)
		case r <= exact:
			m.others = append(m.others, p)
		}
	}
	m.places = distinct(m.places)
	if m.rank == asAddress {
		m.places = longest(m.places)
	}
	m.others = m.elsewhere()
	return m
}

// distinct leaves out places that are the same by name and area.
func distinct(places []place) []place {
	var list []place
	for _, p := range places {
		if !slices.ContainsFunc(list, func(other place) bool {
			return other.name == p.name && other.city == p.city && other.class10 == p.class10
		}) {
			list = append(list, p)
		}
	}
	return list
}

func longest(places []place) []place {
	length := 0
	for _, p := range places {
		length = max(length, len(p.city+p.name))
	}
	return slices.DeleteFunc(places, func(p place) bool { return len(p.city+p.name) < length })
}

// elsewhere returns the others that are municipalities in another prefecture. Only they are worth a mention: areas and
// stations named after a place lie around it.
func (m match) elsewhere() []place {
	if m.rank < asWhole {
		return nil
	}
	return distinct(slices.DeleteFunc(m.others, func(p place) bool {
		return p.kind() == "" || slices.ContainsFunc(m.places,
			func(found place) bool { return found.prefecture() == p.prefecture() })
	}))
}

// sameForecast reports whether one forecast is for all the places found: they are in one forecast area, or those that
// are not are areas themselves and in one file.
func (m match) sameForecast() bool {
	return !slices.ContainsFunc(m.places, func(p place) bool {
		return p.office == "" || fileOf(p.office) != fileOf(m.places[0].office) ||
			p.level >= municipalityLevel && p.class10 != m.places[0].class10
	})
}

// nearest returns up to five places with names like location: the most alike first, and of those the largest.
func (a atlas) nearest(location string) []place {
	q := newQuery(strings.Join(split(fold(location)), " "))
	type candidate struct {
		place
		distance int
	}
	var list []candidate
	for _, p := range a {
		if d := q.distance(p); d >= 0 && p.level != stationLevel && p.level != regionLevel {
			list = append(list, candidate{p, d})
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.size(), y.size()))
	})
	var places []place
	for _, c := range list {
		if len(places) < 5 && !slices.ContainsFunc(places, func(p place) bool {
			return p.name == c.name &&
				p.class10 == c.class10
		}) {
			places = append(places, c.place)
		}
	}
	return places
}

// municipalities returns the municipalities of JMA's table.
func (a atlas) municipalities() []place {
	return distinct(slices.DeleteFunc(slices.Clone(a), func(p place) bool {
		return p.level != municipalityLevel || p.class15 == ""
	}))
}

// size orders places by how many people ask for them: prefectures, their capitals and the cities with wards, other
// cities, the rest.
func (p place) size() int {
	switch {
	case p.level <= officeLevel:
		return 0
	case slices.ContainsFunc(prefectures, func(f prefecture) bool { return f.capital == p.name }):
		return 1
	case slices.ContainsFunc(nicknames, func(n nickname) bool {
		return n.city != "" &&
			strings.HasSuffix(n.targets[0], p.name)
	}):
		return 1
	case p.stemRank() == asCity:
		return 2
	}
	return 3
}

// distance returns how many characters of q would have to change to name p, -1 if too many. A name that has q in its
// midst is as far as two changes.
func (q query) distance(p place) int {
	text, name, share := q.text, stemOf(fold(p.name)), 2
	switch {
	case q.latin != "":
		stem, _ := splitKind(p.en)
		text, name, share = q.stem, romaji(stem), 3
	case q.kana != "" && p.kana != "":
		text, name, share = q.kana, p.kana, 3
		for _, ending := range kanaEndings {
			if stem, ok := strings.CutSuffix(name, ending); ok && p.level != areaLevel {
				name = stem
				break
			}
		}
	default:
		text = stemOf(text)
	}
	n := utf8.RuneCountInString(text)
	switch d := editDistance([]rune(text), []rune(name)); {
	case n < 2:
		return -1
	case d <= max(1, n/share):
		return d
	case strings.Contains(name, text):
		return 2
	}
	return -1
}

// editDistance is the number of characters to change, add, leave out or swap with their neighbour (optimal string
// alignment).
func editDistance(x, y []rune) int {
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
