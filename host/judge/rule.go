package judge

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/locale"
)

// Rule decides about the commands that it matches. A command must match Programs, Flags and Args.
type Rule struct {
	Name   string
	Action Action
	// Programs are patterns of names without directory; one must match. "*" stands for any text, "?" for one character.
	// "git push" names a subcommand. Empty matches all programs.
	Programs []string
	// Flags must all be given. Each lists its spellings, separated by "|": letters, which may be combined after one
	// dash, and long names: "r|R|recursive".
	Flags []string
	// Args are patterns with the same wildcards; one must match an argument. Paths are also matched in their cleaned
	// form. Options of known programs are matched in all of their spellings, with and without their values.
	Args []string
	// Reason explains the rule to the model and to the person who is asked.
	Reason string

	programs, args []*regexp.Regexp
}

func (r *Rule) compile() error {
	if len(r.Programs)+len(r.Flags)+len(r.Args) == 0 {
		return locale.Text{"en": `it names no program, flag or argument, and would match everything: write programs: ` +
			`["*"] if you mean that`,
			"ja": `programs、flags、args のどれもないため、すべてに一致します。そのつもりなら programs: ["*"] と書いてください`}.Errorf()
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

// matches reports whether the rule applies to c. Unknown arguments match every restricting rule. A rule that allows
// some arguments does not apply if other arguments can start programs, unless it names them too.
func (r *Rule) matches(c *Command) bool {
	names := []string{c.Name()}
	if c.args != nil {
		names = append(names, c.args.name)
	}
	if len(r.programs) > 0 && !slices.ContainsFunc(names,
		func(name string) bool { return anyMatches(r.programs, name) }) {
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
	return r.Action > Allow || len(r.Flags)+len(r.args) == 0 || c.args == nil ||
		!slices.ContainsFunc(c.args.risks, r.ignores)
}

// names reports whether a pattern of the rule matches an argument.
func (r *Rule) names(argument string) bool {
	return anyMatches(r.args, argument) || strings.Contains(argument, "/") && anyMatches(r.args, path.Clean(argument))
}

// ignores reports whether the rule does not name the argument of a risk.
func (r *Rule) ignores(d risk) bool {
	return !slices.ContainsFunc(d.words, func(word string) bool {
		return r.names(word) || slices.ContainsFunc(r.Flags, func(flag string) bool {
			return slices.ContainsFunc(strings.Split(flag, "|"), func(name string) bool { return word == dashed(name) })
		})
	})
}

func anyMatches(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// hasFlag reports whether a flag was given in one of its spellings. If the options could not be parsed, any argument
// that looks like the flag counts.
func (c *Command) hasFlag(names []string) bool {
	if c.args != nil && !c.args.literal && !c.args.unparsed {
		return c.args.has(names...)
	}
	return looksLike(c.Argv[1:], names)
}

// looksLike reports whether an argument may be a flag in one of its spellings. GNU programs accept prefixes of long
// names, and options after operands.
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
