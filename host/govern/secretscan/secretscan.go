// Package secretscan finds secrets in tool arguments, results and logs, and masks or refuses them.
//
// New returns a Scanner for an operator's Rules; Text, Texts and JSON scan and mask. The rules for secrets come from
// the gitleaks project: tokens of 200 vendors, private keys, JSON web tokens. The engine is made for short texts on the
// path of a call. One pass finds the keywords of all rules; then a rule's regular expression runs only around its
// keyword, in time linear in the text (RE2). Expressions are compiled at their first use.
package secretscan

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/locale"
)

// Action is the treatment of a secret that was found.
type Action string

// Actions.
const (
	Ignore Action = "ignore" // not scanned for
	Report Action = "report" // passed on and recorded
	Mask   Action = "mask"   // replaced by [masked: RULE]
	Refuse Action = "refuse" // the text with the secret is not passed on
)

// Place is the kind of text in which a secret was found.
type Place string

// Places.
const (
	Arguments Place = "arguments"
	Results   Place = "results"
	Logs      Place = "logs"
)

// Finding is a rule that matched in a place.
type Finding struct {
	Rule   string
	Place  Place
	Action Action
}

// Rules configure a Scanner. The zero value means the defaults.
type Rules struct {
	// Arguments applies to secrets in tool arguments. Empty means Report.
	Arguments Action
	// Results applies to secrets in tool results, including errors. Empty means Mask.
	Results Action
	// Logs applies to secrets in the logs of plugins. Refuse drops the line. Empty means Mask.
	Logs Action
	// Overrides replace the action of single rules, except in places where the action is Ignore. The first match wins.
	// Without an override, the heuristic rule generic-api-key is at most reported.
	Overrides []Override
	// Allow has regular expressions (RE2) for text that looks like a secret but is none.
	Allow []string
}

// Override is the action for rules whose ID matches the glob Rule.
type Override struct {
	Rule   string
	Action Action
}

// generic is the heuristic rule: a random-looking value assigned to a name such as key or token.
const generic = "generic-api-key"

// Scanner scans for secrets. It is safe for concurrent use.
type Scanner struct {
	places    map[Place]Action
	overrides []Override
	allow     []*regexp.Regexp
}

// New returns a Scanner. It fails for an unknown action, an invalid glob or regular expression, or an override that
// matches no rule.
func New(rules *Rules) (*Scanner, error) {
	s := &Scanner{places: map[Place]Action{
		Arguments: or(rules.Arguments, Report), Results: or(rules.Results, Mask), Logs: or(rules.Logs, Mask),
	}, overrides: rules.Overrides}
	for place, action := range s.places {
		if !action.known() {
			return nil, locale.Text{"en": "%s: %w"}.Errorf(place, errAction)
		}
	}
	for _, o := range rules.Overrides {
		if err := o.check(); err != nil {
			return nil, err
		}
	}
	for _, text := range rules.Allow {
		expression, err := regexp.Compile(text)
		if err != nil {
			return nil, locale.Text{"en": "allow: %w", "ja": "allow の正規表現が正しくありません (%w)"}.Errorf(err)
		}
		s.allow = append(s.allow, expression)
	}
	return s, nil
}

// Default returns a Scanner with the default rules.
func Default() *Scanner {
	s, err := New(&Rules{})
	if err != nil {
		panic(err) // the zero rules are valid
	}
	return s
}

var errAction = locale.Text{"en": "must be ignore, report, mask or refuse",
	"ja": "ignore、report、mask、refuse のいずれかを書いてください"}.Errorf()

func or(a, b Action) Action {
	if a == "" {
		return b
	}
	return a
}

func (a Action) known() bool { return slices.Contains([]Action{Ignore, Report, Mask, Refuse}, a) }

func (o Override) check() error {
	if !o.Action.known() {
		return locale.Text{"en": "rule %q: %w", "ja": "ルール %q: %w"}.Errorf(o.Rule, errAction)
	}
	_, err := path.Match(o.Rule, "")
	if err != nil || !slices.ContainsFunc(ruleIDs(), o.covers) {
		return locale.Text{
			"en": "rule %q: there is no such rule: it is the ID of one of gitleaks' (slack-bot-token), " +
				"or a glob (slack-*)",
			"ja": "ルール %q はありません。gitleaks のルールの ID (例: slack-bot-token) か、glob (例: slack-*) を書いてください",
		}.Errorf(o.Rule)
	}
	return nil
}

func (o Override) covers(rule string) bool {
	ok, _ := path.Match(o.Rule, rule)
	return ok
}

// action returns the action for a rule in a place.
func (s *Scanner) action(rule string, place Place) Action {
	action := s.places[place]
	if action == Ignore {
		return Ignore
	}
	for _, o := range s.overrides {
		if o.covers(rule) {
			return o.Action
		}
	}
	if rule == generic {
		return Report
	}
	return action
}

// Text scans a text and returns it with the secrets masked whose action is Mask. found lists each matching rule once.
func (s *Scanner) Text(place Place, text string) (masked string, found []Finding) {
	found, edits := s.scan(place, text, 0, s.action)
	return mask(text, edits), found
}

// Texts scans several texts, including for secrets split across two of them, and masks in place. found lists each
// matching rule once.
func (s *Scanner) Texts(place Place, texts []*string) (found []Finding) {
	for _, text := range texts {
		masked, more := s.Text(place, *text)
		*text, found = masked, union(found, more)
	}
	if len(texts) < 2 {
		return found
	}
	var whole strings.Builder
	for _, text := range texts {
		whole.WriteString(*text)
	}
	more, edits := s.scan(place, whole.String(), 0, s.action)
	at := 0
	for _, text := range texts {
		size := len(*text)
		var inside []match
		for _, m := range edits {
			if m.start < at+size && m.end > at {
				inside = append(inside, match{m.rule, max(m.start-at, 0), min(m.end-at, size)})
			}
		}
		*text = mask(*text, inside)
		at += size
	}
	return union(found, more)
}

// union adds the findings of more that found lacks.
func union(found, more []Finding) []Finding {
	for _, f := range more {
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}

// Masked returns text with all secrets masked, for records that outlive the call.
func (s *Scanner) Masked(text string) string {
	_, edits := s.scan(Logs, text, 0, func(string, Place) Action { return Mask })
	return mask(text, edits)
}

// scan finds secrets in text from an offset on. The text before is context.
func (s *Scanner) scan(place Place, text string, from int,
	act func(string, Place) Action) (found []Finding, edits []match) {
	if s.places[place] == Ignore {
		return nil, nil
	}
	for _, m := range find(text, func(rule string) bool { return act(rule, place) != Ignore }) {
		if m.start < from || s.allowed(text[m.start:m.end]) {
			continue
		}
		f := Finding{m.rule, place, act(m.rule, place)}
		found = union(found, []Finding{f})
		if f.Action == Mask {
			edits = append(edits, m)
		}
	}
	return found, edits
}

func (s *Scanner) allowed(secret string) bool {
	return slices.ContainsFunc(s.allow, func(e *regexp.Regexp) bool { return e.MatchString(secret) })
}

// mask replaces the matches, which must be in order and not overlap.
func mask(text string, edits []match) string {
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	end := 0
	for _, m := range edits {
		b.WriteString(text[end:m.start])
		b.WriteString("[masked: " + m.rule + "]")
		end = m.end
	}
	b.WriteString(text[end:])
	return b.String()
}
