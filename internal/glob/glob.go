// Package glob matches paths against untrusted patterns: Match, for a pattern that is Valid.
package glob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a pattern. The time for matching is exponential in the number of groups in braces.
const (
	maxGroups       = 4
	maxAlternatives = 32
)

// Valid reports whether a pattern has doublestar's syntax and can be matched fast: it has at most four groups in braces
// and 32 commas.
func Valid(pattern string) bool {
	return doublestar.ValidatePattern(pattern) && strings.Count(pattern, "{") <= maxGroups &&
		strings.Count(pattern, ",") <= maxAlternatives
}

// Match reports whether a path matches a pattern that is Valid.
func Match(pattern, path string) bool { return doublestar.MatchUnvalidated(pattern, path) }
