package index

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Search returns the plugins in which every word of query occurs, the best match first: in the name before the title
// and the keywords, and these before other texts. Without words it returns all, by name.
//
// Words are compared without case, width and the difference between hiragana and katakana. Japanese needs no spaces
// between words of the texts, because words match anywhere.
func Search(plugins []Plugin, query string) []Plugin {
	type match struct {
		Plugin
		score int
	}
	words := strings.Fields(fold(query))
	var found []match
	for i := range plugins {
		if score, ok := rank(&plugins[i], words); ok {
			found = append(found, match{plugins[i], score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.Name, b.Name))
	})
	list := make([]Plugin, len(found))
	for i, m := range found {
		list[i] = m.Plugin
	}
	return list
}

// rank returns how well p matches the words, and whether it has all of them.
func rank(p *Plugin, words []string) (score int, ok bool) {
	name := fold(p.Name)
	heads := []string{fold(p.Title["en"]), fold(p.Title["ja"])}
	for _, keyword := range p.Keywords {
		heads = append(heads, fold(keyword))
	}
	rest := fold(strings.Join([]string{p.Description["en"], p.Description["ja"], p.Asks["en"],
		p.Asks["ja"], p.Publisher,
		p.License, p.Reference}, "\n"))
	for _, word := range words {
		contains := func(text string) bool { return strings.Contains(text, word) }
		switch {
		case name == word:
			score += 100
		case strings.HasPrefix(name, word):
			score += 60
		case strings.Contains(name, word):
			score += 40
		case slices.Contains(heads, word):
			score += 30
		case slices.ContainsFunc(heads, contains):
			score += 20
		case strings.Contains(rest, word):
			score++
		default:
			return 0, false
		}
	}
	return score, true
}

// fold returns text in the form in which words are compared.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'ァ' && r <= 'ヶ' {
			return r - ('ァ' - 'ぁ')
		}
		return r
	}, strings.ToLower(norm.NFKC.String(text)))
}

// skeleton maps names that look alike to the same text.
func skeleton(name string) string {
	return lookalikes.Replace(name)
}

var lookalikes = strings.NewReplacer("rn", "m", "vv", "w", "cl", "d", "0", "o", "1", "l", "i", "l", "5", "s", "-", "")

// markConfusable sets Resembles of plugins whose names look like another one's, in any index or installed.
func markConfusable(plugins []Plugin, installed []string) {
	names := map[string][]string{}
	note := func(name string) {
		s := skeleton(name)
		if !slices.Contains(names[s], name) {
			names[s] = append(names[s], name)
		}
	}
	for _, name := range installed {
		note(name)
	}
	for i := range plugins {
		note(plugins[i].Name)
	}
	for i := range plugins {
		p := &plugins[i]
		for _, name := range names[skeleton(p.Name)] {
			if name != p.Name {
				p.Resembles = name
				break
			}
		}
	}
}
