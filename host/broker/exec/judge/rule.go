package judge

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Rule says what becomes of some commands. It matches a command if all of what it names does.
type Rule struct {
	Name   string
	Action Action
	// Programs are names, without directory, one of which must be the program's; "*" stands for any text, "?" for one character. Empty
	// matches all.
	Programs []string
	// Flags must all be among the options. Each lists its spellings, separated by "|": letters, which may stand together after one dash,
	// and long names: "r|R|recursive".
	Flags []string
	// Args are patterns, one of which must match an argument, with the same wildcards. Paths are also matched in their shortest form.
	Args []string
	// Reason says why, for the model and for whoever is asked.
	Reason string

	programs, args []*regexp.Regexp
}

func (r *Rule) compile() error {
	if len(r.Programs)+len(r.Flags)+len(r.Args) == 0 {
		return errors.New("it names no program, flag or argument, and so would match everything: write programs: [\"*\"] for that")
	}
	r.programs, r.args = patterns(r.Programs), patterns(r.Args)
	return nil
}

var wildcards = strings.NewReplacer(`\*`, `.*`, `\?`, `.`)

// patterns compiles globs.
func patterns(globs []string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, len(globs))
	for i, glob := range globs {
		compiled[i] = regexp.MustCompile(`(?s)^` + wildcards.Replace(regexp.QuoteMeta(glob)) + `$`)
	}
	return compiled
}

// matches reports whether the rule is about c. Arguments that are not known are taken to be those of a rule that restricts.
func (r *Rule) matches(c *Command) bool {
	if len(r.programs) > 0 && !anyMatches(r.programs, c.Name()) {
		return false
	}
	assumed := c.Open && r.Action > Allow
	for _, flag := range r.Flags {
		if !assumed && !hasFlag(c.Argv[1:], strings.Split(flag, "|")) {
			return false
		}
	}
	return len(r.args) == 0 || assumed || slices.ContainsFunc(c.Argv[1:], func(argument string) bool {
		return anyMatches(r.args, argument) || strings.Contains(argument, "/") && anyMatches(r.args, path.Clean(argument))
	})
}

func anyMatches(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// hasFlag reports whether one of the spellings of a flag is among the arguments. GNU programs take any beginning of a long name, and
// options after operands.
func hasFlag(arguments, spellings []string) bool {
	for _, argument := range arguments {
		if argument == "--" {
			return false
		}
		if slices.ContainsFunc(spellings, func(flag string) bool { return spells(argument, flag) }) {
			return true
		}
	}
	return false
}

func spells(argument, flag string) bool {
	if long, ok := strings.CutPrefix(argument, "--"); ok {
		name, _, _ := strings.Cut(long, "=")
		return len(flag) > 1 && name != "" && strings.HasPrefix(flag, name)
	}
	letters, ok := strings.CutPrefix(argument, "-")
	return ok && (letters == flag || len(flag) == 1 && strings.Contains(letters, flag))
}
