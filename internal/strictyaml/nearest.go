package strictyaml

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/locale"
)

// Unknown is the error for a name of a kind ("key", "property") that is not in known, with the name that was probably
// meant.
func Unknown(kind, name string, known []string) *locale.Error {
	what := word(kind)
	if near := Nearest(name, known); near != "" {
		return textOf("unknown %s %s: did you mean %q?").Errorf(what, quote(name), near)
	}
	if len(known) == 0 {
		return textOf("unknown %s %s: none is allowed here").Errorf(what, quote(name))
	}
	names := slices.Sorted(slices.Values(known))
	const most = 24
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return textOf("unknown %s %s: known are %s").Errorf(what, quote(name), strings.Join(names, ", "))
}

// Nearest returns the one of known that name is probably a misspelling of, or "" if none is near: at most one edit in
// three letters away, capitals and the separators "-" and "_" aside.
func Nearest(name string, known []string) string {
	best, most := "", 0.0
	for _, k := range slices.Sorted(slices.Values(known)) {
		if s := Similarity(name, k); s > most {
			best, most = k, s
		}
	}
	return best
}

// Similarity is 1 for a name that is the same as known, as Nearest sees it, less for a misspelling of it, and 0 for
// another name.
func Similarity(name, known string) float64 {
	if len(name) > 64 || len(known) > 64 {
		return 0
	}
	a, b, most := fold(name), fold(known), max(1, len(name)/3)
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return 0 // at least as many edits
	}
	edits := distance(a, b)
	if edits > most {
		return 0
	}
	return 1 - float64(edits)/float64(1+len(name))
}

var separators = strings.NewReplacer("-", "", "_", "")

func fold(s string) string { return separators.Replace(strings.ToLower(s)) }

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string
// alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
