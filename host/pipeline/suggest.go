package pipeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hako-run/hako/internal/strictyaml"
)

// maxSuggestions bounds the suggested names.
const maxSuggestions = 3

// nearest returns the names among known that name may stand for, best first: those with a similar spelling, and those
// with the same words in any order or with a prefix added by a client.
func nearest(name string, known []string) []string {
	if len(name) > 128 {
		return nil
	}
	type candidate struct {
		name  string
		score float64
	}
	var found []candidate
	for _, k := range known {
		if score := max(strictyaml.Similarity(name, k), shared(words(name), words(k))); score >= 0.5 {
			found = append(found, candidate{k, score})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score),
			cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(len(found), maxSuggestions)] {
		names = append(names, c.name)
	}
	return names
}

// camelHump matches the start of a word in camelCase.
var camelHump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// words returns the distinct words of an identifier in lower case.
func words(name string) []string {
	name = camelHump.ReplaceAllString(name, "${1}_${2}")
	list := strings.FieldsFunc(strings.ToLower(name),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(list)
	return slices.Compact(list)
}

// shared returns the fraction of the words of two names that both have, from 0 to 1. Plurals count as their singular.
func shared(a, b []string) float64 {
	both := 0
	for _, word := range a {
		if slices.ContainsFunc(b, func(other string) bool {
			return strings.TrimSuffix(word,
				"s") == strings.TrimSuffix(other, "s")
		}) {
			both++
		}
	}
	if both == 0 {
		return 0
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
