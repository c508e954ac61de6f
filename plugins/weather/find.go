package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// match is what a search found: the places that a name fits best, and others whose name it is as well.
type match struct {
	places []place
	others []place
	rank   rank
}

// find returns the places that location names with a rank of at most max. Of several ways to read it, the first that finds something
// counts.
func (a atlas) find(location string, max rank) match {
	for _, r := range readings(location) {
		if m := a.best(r.query, r.prefecture); m.rank <= min(max, r.max) {
			return m
		}
	}
	return match{rank: unfit}
}

// best returns the places that q fits best, in one prefecture unless that is 0.
func (a atlas) best(q query, prefecture int) match {
	m := match{rank: unfit}
	for _, p := range a {
		if prefecture != 0 && p.prefecture() != prefecture {
			continue
		}
		switch r := q.rank(p); {
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
		if !slices.ContainsFunc(list, func(other place) bool { return other.name == p.name && other.class10 == p.class10 }) {
			list = append(list, p)
		}
	}
	return list
}

func longest(places []place) []place {
	length := 0
	for _, p := range places {
		length = max(length, len(p.name))
	}
	return slices.DeleteFunc(places, func(p place) bool { return len(p.name) < length })
}

// elsewhere returns the others that are municipalities in another prefecture. Only they are worth a mention: areas and stations
// named after a place lie around it.
func (m match) elsewhere() []place {
	if m.rank < asWhole {
		return nil
	}
	return distinct(slices.DeleteFunc(m.others, func(p place) bool {
		return p.level != municipalityLevel || slices.ContainsFunc(m.places, func(found place) bool { return found.prefecture() == p.prefecture() })
	}))
}

// sameForecast reports whether all the places found are in the same forecast file.
func (m match) sameForecast() bool {
	return !slices.ContainsFunc(m.places, func(p place) bool { return p.office == "" || fileOf(p.office) != fileOf(m.places[0].office) })
}

// nearest returns up to five places with names like location, the most alike first.
func (a atlas) nearest(location string) []place {
	q := newQuery(strings.Join(split(fold(location)), " "))
	type candidate struct {
		place
		distance int
	}
	var list []candidate
	for _, p := range a {
		if d := q.distance(p); d >= 0 && p.level != stationLevel {
			list = append(list, candidate{p, d})
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.distance, y.distance) })
	var places []place
	for _, c := range list {
		if len(places) < 5 && !slices.ContainsFunc(places, func(p place) bool { return p.name == c.name }) {
			places = append(places, c.place)
		}
	}
	return places
}

// distance returns how many characters of q would have to change to name p, -1 if too many.
func (q query) distance(p place) int {
	text, name, share := q.text, stemOf(fold(p.name)), 2
	switch {
	case q.latin != "":
		stem, _ := splitKind(p.en)
		text, name, share = q.stem, romaji(stem), 3
	case q.kana != "" && p.kana != "":
		text, name, share = q.kana, p.kana, 3
	default:
		text = stemOf(text)
	}
	d := editDistance([]rune(text), []rune(name))
	if n := utf8.RuneCountInString(text); n < 2 || d > max(1, n/share) {
		return -1
	}
	return d
}

// editDistance is Levenshtein's.
func editDistance(x, y []rune) int {
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, a := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, b := range y {
			change := diagonal
			if a != b {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(y)]
}
