package secretscan

import (
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:generate go test -run ^TestRulesAreCurrent$ . -update

// gitleaksRules are the rules of the gitleaks module as JSON. Its package, which reads TOML, would be linked for them.
//
//go:embed gitleaks.json
var gitleaksRules []byte

// ruleFile is the form of gitleaksRules.
type ruleFile struct {
	License    string
	Allowlist  *allowlist   `json:",omitempty"`
	Allowlists []*allowlist `json:",omitempty"`
	Rules      []*rule
}

// rule is a gitleaks rule.
type rule struct {
	ID          string
	Regex       string       `json:",omitempty"`
	Path        string       `json:",omitempty"` // rules for files of one kind are not used
	SecretGroup int          `json:",omitempty"`
	Entropy     float64      `json:",omitempty"`
	Keywords    []string     `json:",omitempty"`
	Allowlists  []*allowlist `json:",omitempty"`

	// expression compiles Regex, once it is needed.
	expression func() *regexp.Regexp
	reach      int
	// first reports whether matches begin with the keyword, at the start of a word.
	first bool
}

// allowlist excludes matches that are not secrets.
type allowlist struct {
	Condition   string   `json:",omitempty"`
	RegexTarget string   `json:",omitempty"`
	Paths       []string `json:",omitempty"`
	Regexes     []string `json:",omitempty"`
	StopWords   []string `json:",omitempty"`

	expressions func() []*regexp.Regexp
	stop        func() *keywords
}

// ruleset has all rules and an index of their keywords.
type ruleset struct {
	rules    []*rule
	general  []*allowlist
	keywords *keywords
	// byKeyword has the rules of each keyword, by its index among the keywords.
	byKeyword [][]*rule
}

// loaded decodes the rules at first use.
var loaded = sync.OnceValue(load)

func load() *ruleset {
	var file ruleFile
	if err := json.Unmarshal(gitleaksRules, &file); err != nil {
		panic("secretscan: the rules cannot be read: " +
			err.Error()) // they are part of the program, and a test reads them
	}
	set := &ruleset{general: file.Allowlists}
	if file.Allowlist != nil {
		set.general = append(set.general, file.Allowlist)
	}
	for _, a := range set.general {
		a.prepare()
	}
	byKeyword := map[string][]*rule{}
	for _, r := range file.Rules {
		if r.Path != "" || r.Regex == "" || len(r.Keywords) == 0 {
			continue
		}
		r.prepare()
		set.rules = append(set.rules, r)
		for _, k := range r.Keywords {
			k = strings.ToLower(k)
			byKeyword[k] = append(byKeyword[k], r)
		}
	}
	words := slices.Sorted(maps.Keys(byKeyword))
	for _, word := range words {
		set.byKeyword = append(set.byKeyword, byKeyword[word])
	}
	set.keywords = newKeywords(words)
	return set
}

// Prepare loads the rules, which otherwise delays the first scan by about 10 ms.
func Prepare() { loaded() }

// ruleIDs lists the IDs of all rules.
func ruleIDs() []string {
	var ids []string
	for _, r := range loaded().rules {
		ids = append(ids, r.ID)
	}
	return ids
}

// Sizes of the window around a keyword in which a rule's expression runs, in bytes. A match at the edge extends it.
const (
	before       = 128
	after        = 1 << 10
	genericAfter = 256
	keyAfter     = 32 << 10 // private keys are long, and have their end in the expression
	farthest     = 64 << 10
	keyMarker    = "PRIVATE KEY"
)

func (r *rule) prepare() {
	r.expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
	r.first = len(r.Keywords) == 1 && strings.HasPrefix(r.Regex, `\b(`+r.Keywords[0])
	switch {
	case strings.Contains(r.Regex, keyMarker):
		r.reach = keyAfter
	case r.ID == generic:
		r.reach = genericAfter
	default:
		r.reach = after
	}
	for _, a := range r.Allowlists {
		a.prepare()
	}
}

func (a *allowlist) prepare() {
	a.expressions = sync.OnceValue(func() []*regexp.Regexp {
		var list []*regexp.Regexp
		for _, text := range a.Regexes {
			list = append(list, regexp.MustCompile(text))
		}
		return list
	})
	a.stop = sync.OnceValue(func() *keywords { return newKeywords(lowered(a.StopWords)) })
}

// allows reports whether the list excludes secret, given its match and line. Lists that also require a path never
// apply.
func (a *allowlist) allows(secret, match, line string) bool {
	if len(a.Paths) > 0 && !strings.EqualFold(a.Condition, "or") && a.Condition != "" {
		return false
	}
	target := secret
	switch a.RegexTarget {
	case "match":
		target = match
	case "line":
		target = line
	}
	if slices.ContainsFunc(a.expressions(), func(e *regexp.Regexp) bool { return e.MatchString(target) }) {
		return true
	}
	return len(a.StopWords) > 0 && a.stop().hasAny(secret)
}

// entropy is the Shannon entropy in bits per byte.
func entropy(text string) (bits float64) {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
