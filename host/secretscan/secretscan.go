// Package secretscan finds secrets in what goes through the host: arguments, results, logs.
//
// What a secret looks like is said by the rules that the gitleaks project maintains: 200 vendors' tokens, private keys, JSON web tokens. They
// are taken from its module as data; the engine here is made for short texts in the way of a call: keywords first, all in one pass, and a
// rule's expression only around its keyword, in time linear in the text (RE2). Nothing is compiled before a text needs it.
package secretscan

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Action is what becomes of a secret.
type Action string

// Actions.
const (
	Ignore Action = "ignore" // nothing, and it is not looked for
	Report Action = "report" // it is passed on, and recorded
	Mask   Action = "mask"   // [masked: RULE] takes its place
	Refuse Action = "refuse" // what holds it is not passed on
)

// Place is where a secret was found.
type Place string

// Places.
const (
	Arguments Place = "arguments"
	Results   Place = "results"
	Logs      Place = "logs"
)

// Finding is one rule that has matched in one place.
type Finding struct {
	Rule   string
	Place  Place
	Action Action
}

// Rules are an operator's. The zero value takes the defaults.
type Rules struct {
	// Arguments says what becomes of secrets that callers pass to tools. Empty means Report.
	Arguments Action
	// Results says what becomes of those in what tools answer, error texts included. Empty means Mask.
	Results Action
	// Logs says what becomes of those in what plugins log. Refuse drops the line. Empty means Mask.
	Logs Action
	// Overrides are actions for single rules, wherever the action of the place is not Ignore. The first that matches counts; after them generic-api-key, which guesses, is
	// reported at most.
	Overrides []Override
	// Allow are expressions (RE2) for what is no secret although it looks like one.
	Allow []string
}

// Override is another action for rules whose ID matches the glob Rule.
type Override struct {
	Rule   string
	Action Action
}

// generic is the rule that guesses: anything that looks random and is assigned to something called key, token and so on.
const generic = "generic-api-key"

// Scanner looks for secrets under an operator's rules. It is safe for concurrent use.
type Scanner struct {
	places    map[Place]Action
	overrides []Override
	allow     []*regexp.Regexp
}

// New returns a Scanner. It fails for an unknown action, a pattern that is none, an expression that is none, or an override that matches no
// rule there is.
func New(rules *Rules) (*Scanner, error) {
	s := &Scanner{places: map[Place]Action{
		Arguments: or(rules.Arguments, Report), Results: or(rules.Results, Mask), Logs: or(rules.Logs, Mask),
	}, overrides: rules.Overrides}
	for place, action := range s.places {
		if !action.known() {
			return nil, fmt.Errorf("%s: %w", place, errAction)
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
			return nil, fmt.Errorf("allow: %w", err)
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

var errAction = errors.New("must be ignore, report, mask or refuse")

func or(a, b Action) Action {
	if a == "" {
		return b
	}
	return a
}

func (a Action) known() bool { return slices.Contains([]Action{Ignore, Report, Mask, Refuse}, a) }

func (o Override) check() error {
	if !o.Action.known() {
		return fmt.Errorf("rule %q: %w", o.Rule, errAction)
	}
	_, err := path.Match(o.Rule, "")
	if err != nil || !slices.ContainsFunc(IDs(), o.covers) {
		return fmt.Errorf("rule %q: there is no such rule: it is the ID of one of gitleaks' (slack-bot-token), or a glob (slack-*)", o.Rule)
	}
	return nil
}

func (o Override) covers(rule string) bool {
	ok, _ := path.Match(o.Rule, rule)
	return ok
}

// action is what becomes of what a rule finds in a place.
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

// Text looks for secrets in a text and returns it with those masked that are to be. found is each rule once.
func (s *Scanner) Text(place Place, text string) (masked string, found []Finding) {
	found, edits := s.scan(place, text, 0, s.action)
	return mask(text, edits), found
}

// Texts looks for secrets in several texts, also in those that lie over the ends of two, and masks them in place. found is each rule once.
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

// union adds findings that are not there yet.
func union(found, more []Finding) []Finding {
	for _, f := range more {
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}

// Masked is text with every secret in it masked, for records that outlive the call.
func (s *Scanner) Masked(text string) string {
	_, edits := s.scan(Logs, text, 0, func(string, Place) Action { return Mask })
	return mask(text, edits)
}

// scan looks for secrets in text from the offset on; what comes before is context.
func (s *Scanner) scan(place Place, text string, from int, act func(string, Place) Action) (found []Finding, edits []match) {
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

// mask puts a mark in the place of each match; they do not overlap and are in order.
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
