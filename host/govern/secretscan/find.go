package secretscan

import (
	"cmp"
	"slices"
	"strings"
)

// match is the position of a secret in a text.
type match struct {
	rule       string
	start, end int
}

// window is a part of a text in which a rule's expression runs.
type window struct{ start, end int }

// find returns the secrets found by the wanted rules, in order and without overlaps.
func find(text string, wanted func(rule string) bool) []match {
	set := loaded()
	var matches []match
	for r, windows := range set.candidates(text, wanted) {
		for _, w := range windows {
			matches = append(matches, r.findIn(set, text, w)...)
		}
	}
	return disjoint(matches)
}

// candidates returns the rules whose keywords occur in text, with the windows to run them in.
func (set *ruleset) candidates(text string, wanted func(string) bool) map[*rule][]window {
	var found map[*rule][]window
	guessed := 0
	for end, words := range set.keywords.in(text) {
		for _, word := range words {
			n := len(set.keywords.words[word])
			if n <= shortKeyword && !continues(text[end:]) {
				continue
			}
			for _, r := range set.byKeyword[word] {
				if r.ID == generic {
					if guessed++; guessed > maxGuesses {
						continue
					}
				}
				if r.first && end > n && isToken(text[end-n-1]) || !wanted(r.ID) {
					continue
				}
				if found == nil {
					found = map[*rule][]window{}
				}
				found[r] = widen(found[r], window{max(0, end-before), wordEnd(text, end+r.reach)})
			}
		}
	}
	return found
}

const (
	// shortKeyword is the length of keywords that occur in every text, such as "ey" for base64 of JSON. They count only
	// if a token follows.
	shortKeyword = 2
	// maxGuesses bounds how often the heuristic rule runs in one text: its keywords are common and its expression is
	// slow.
	maxGuesses = 64
)

// continues reports whether text begins with ten token characters.
func continues(text string) bool {
	const enough = 10
	if len(text) < enough {
		return false
	}
	for _, c := range []byte(text[:enough]) {
		if !isToken(c) && c != '-' && c != '~' && c != '.' {
			return false
		}
	}
	return true
}

// isToken reports whether c is a word character of RE2.
func isToken(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// wordEnd extends at to the end of a token or base64 text, so that a window does not cut it.
func wordEnd(text string, at int) int {
	for limit := min(len(text), at+farthest); at < limit; at++ {
		if c := text[at]; !isToken(c) && c != '-' && c != '.' && c != '+' && c != '/' && c != '=' {
			return at
		}
	}
	return min(at, len(text))
}

// widen appends w, which must not begin before the last window, and merges the two if they overlap.
func widen(list []window, w window) []window {
	if n := len(list); n > 0 && w.start <= list[n-1].end {
		list[n-1].end = max(list[n-1].end, w.end)
		return list
	}
	return append(list, w)
}

// findIn runs the rule in a window of text.
func (r *rule) findIn(set *ruleset, text string, w window) []match {
	var matches []match
	expression := r.expression()
	for start := w.start; start < w.end; {
		found := expression.FindStringSubmatchIndex(text[start:w.end])
		if found == nil {
			break
		}
		if start+found[1] == w.end && w.end < len(text) && w.end-w.start < farthest {
			w.end = min(len(text), w.end+farthest) // the match may continue
			continue
		}
		for i := range found {
			if found[i] >= 0 {
				found[i] += start
			}
		}
		if m, ok := r.secret(set, text, found); ok {
			matches = append(matches, m)
		}
		start = max(found[1], start+1)
	}
	return matches
}

// secret returns the secret within a match, unless an allowlist or the entropy rules it out.
func (r *rule) secret(set *ruleset, text string, found []int) (match, bool) {
	m := match{r.ID, found[0], found[1]}
	if group := r.group(found); group > 0 {
		m.start, m.end = found[2*group], found[2*group+1]
	}
	secret, whole := text[m.start:m.end], text[found[0]:found[1]]
	if secret == "" || r.Entropy > 0 && entropy(secret) <= r.Entropy {
		return m, false
	}
	line := text[strings.LastIndexByte(text[:m.start], '\n')+1:]
	line, _, _ = strings.Cut(line[:min(len(line), farthest)], "\n")
	for _, a := range slices.Concat(r.Allowlists, set.general) {
		if a.allows(secret, whole, line) {
			return m, false
		}
	}
	return m, true
}

// group returns the group that holds the secret: the one that the rule names, else the first that matched, else 0.
func (r *rule) group(found []int) int {
	if r.SecretGroup > 0 {
		return r.SecretGroup
	}
	for i := 1; i < len(found)/2; i++ {
		if found[2*i] >= 0 && found[2*i] < found[2*i+1] {
			return i
		}
	}
	return 0
}

// disjoint removes matches that overlap a match of a more specific rule or a longer match.
func disjoint(list []match) []match {
	slices.SortFunc(list, func(a, b match) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.end-b.start, a.end-a.start),
			cmp.Compare(a.start, b.start),
			cmp.Compare(a.rule, b.rule))
	})
	var kept []match
	for _, m := range list {
		if !slices.ContainsFunc(kept, func(k match) bool { return m.start < k.end && k.start < m.end }) {
			kept = append(kept, m)
		}
	}
	slices.SortFunc(kept, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	return kept
}

// rank orders the heuristic rule last.
func rank(m match) int {
	if m.rule == generic {
		return 1
	}
	return 0
}
