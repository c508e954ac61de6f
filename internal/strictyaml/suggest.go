package strictyaml

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxSuggestions bounds the suggested names.
const maxSuggestions = 3

// Scores of suggestions. Names above alike have most words in common; names above related share a word that is not a
// verb, and are suggested if no name is alike.
const (
	alike   = 0.5
	related = 0.2
)

// Suggest returns the identifiers among known, such as names of tools, that name may stand for, best first: those with
// a similar spelling, and those with the same words in any order, in the plural, with another verb of the same meaning,
// or with a prefix. It returns at most three.
func Suggest(name string, known []string) []string {
	if len(name) > 128 {
		return nil
	}
	type candidate struct {
		name  string
		score float64
	}
	var found []candidate
	least, given := related, words(name)
	for _, k := range known {
		score := max(Similarity(name, k), shared(given, words(k)))
		if score >= alike {
			least = alike
		}
		found = append(found, candidate{k, score})
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return c.score < least })
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(len(found), maxSuggestions)] {
		names = append(names, c.name)
	}
	return names
}

// camelHump matches the start of a word in camelCase.
var camelHump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// sameVerbs has the usual verbs in names of tools, each with the one that stands for all of the same meaning.
var sameVerbs = func() map[string]string {
	table := map[string]string{}
	for _, same := range []string{"create add new make insert", "delete remove erase drop",
		"get show fetch retrieve view",
		"list all", "search find query lookup", "update edit modify change set", "send post notify", "write save put",
		"read open load", "calculate compute calc", "move rename", "run execute exec", "start begin",
		"complete finish done close"} {
		for verb := range strings.FieldsSeq(same) {
			table[verb], _, _ = strings.Cut(same, " ")
		}
	}
	return table
}()

// words returns the distinct words of an identifier, in lower case, in the singular, and with one verb for all of the
// same meaning.
func words(name string) []string {
	if strings.ContainsFunc(name, unicode.IsUpper) {
		name = camelHump.ReplaceAllString(name, "${1}_${2}")
	}
	list := strings.FieldsFunc(strings.ToLower(name),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range list {
		word = strings.TrimSuffix(word, "s")
		list[i] = cmp.Or(sameVerbs[word], word)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// shared returns the fraction of the words of two names that both have, from 0 to 1. It is 0 if these are only verbs.
func shared(a, b []string) float64 {
	both, verb := 0, 0
	for _, word := range a {
		if slices.Contains(b, word) {
			both++
			if sameVerbs[word] != "" {
				verb++
			}
		}
	}
	if both == verb {
		return 0
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
