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
	// Programs are names, without directory, one of which must be the program's; "*" stands for any text, "?" for one
	// character. "git push" is a subcommand. Empty matches all.
	Programs []string
	// Flags must all be among the options. Each lists its spellings, separated by "|": letters, which may stand
	// together after one dash, and long names: "r|R|recursive".
	Flags []string
	// Args are patterns, one of which must match an argument, with the same wildcards. Paths are also matched in their
	// shortest form, and options of programs that this package knows in all of their spellings, with and without their
	// values.
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

// matches reports whether the rule is about c. Arguments that are not known are taken to be those of a rule that
// restricts. A rule that allows some arguments does not allow others that can start programs, unless it names them
// too.
func (r *Rule) matches(c *Command) bool {
	names := []string{c.Name()}
	if c.args != nil {
		names = append(names, c.args.name)
	}
	if len(r.programs) > 0 && !slices.ContainsFunc(names, func(name string) bool { return anyMatches(r.programs, name) }) {
		return false
	}
	assumed := c.Open && r.Action > Allow
	for _, flag := range r.Flags {
		if !assumed && !c.hasFlag(strings.Split(flag, "|")) {
			return false
		}
	}
	if len(r.args) > 0 && !assumed && !slices.ContainsFunc(append(c.args.spellings(), c.Argv[1:]...), r.names) {
		return false
	}
	return r.Action > Allow || len(r.Flags)+len(r.args) == 0 || c.args == nil || !slices.ContainsFunc(c.args.doubts, r.ignores)
}

// names reports whether one of the rule's patterns is about an argument.
func (r *Rule) names(argument string) bool {
	return anyMatches(r.args, argument) || strings.Contains(argument, "/") && anyMatches(r.args, path.Clean(argument))
}

// ignores reports whether the rule says nothing about the argument that a doubt is about.
func (r *Rule) ignores(d doubt) bool {
	return !slices.ContainsFunc(d.words, func(word string) bool {
		return r.names(word) || slices.ContainsFunc(r.Flags, func(flag string) bool {
			return slices.ContainsFunc(strings.Split(flag, "|"), func(name string) bool { return word == dashed(name) })
		})
	})
}

func anyMatches(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// hasFlag reports whether one of the spellings of a flag is among the options: those that the program sees, or, if
// nobody can tell those, what looks like one.
func (c *Command) hasFlag(names []string) bool {
	if c.args != nil && !c.args.literal && !c.args.strange {
		return c.args.has(names...)
	}
	return looksLike(c.Argv[1:], names)
}

// looksLike reports whether one of the spellings of a flag seems to be among the arguments. GNU programs take any
// beginning of a long name, and options after operands.
func looksLike(arguments, spellings []string) bool {
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
