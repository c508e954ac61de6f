// Package lazyregexp compiles regular expressions at their first use. Compiled, a bound such as {0,63} takes up to a
// hundred kilobytes, and most commands use few of the expressions that the program has.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp returns the compiled expression. It may be called concurrently.
type Regexp func() *regexp.Regexp

// New returns the expression, which must be valid: its first use panics otherwise.
func New(expression string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
