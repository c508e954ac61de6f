// Package lazyregexp compiles regular expressions at their first use. Compiled, a bound such as {0,63} takes up to a
// hundred kilobytes, and most commands use few of the expressions that the program has.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression. Its methods are those of regexp.Regexp.
type Regexp struct {
	expression string
	compiled   func() *regexp.Regexp
}

// New returns the expression, which must be valid: its first use panics otherwise.
func New(expression string) *Regexp {
	return &Regexp{expression, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

func (r *Regexp) String() string { return r.expression }

func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

func (r *Regexp) ReplaceAllString(s, replacement string) string {
	return r.compiled().ReplaceAllString(s, replacement)
}

func (r *Regexp) ReplaceAllStringFunc(s string, replacement func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, replacement)
}
