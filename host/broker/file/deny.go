package file

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/internal/glob"
	"github.com/hako-run/hako/internal/visible"
)

// globs are deny globs, folded.
type globs []string

func parseGlobs(patterns []string) (globs, error) {
	var g globs
	for _, p := range patterns {
		clean := strings.Trim(strings.TrimPrefix(p, "./"), "/")
		if clean == "" || !glob.Valid(clean) {
			return nil, fmt.Errorf("deny glob %q is malformed: use doublestar syntax relative to the mount, such as **/.git/**, with at most four groups in braces", p)
		}
		g = append(g, fold(clean))
	}
	return g, nil
}

// match reports whether a path relative to the mount is hidden. Its parents must have been asked for as well, because a glob
// for a directory hides all below it.
func (g globs) match(path string) bool {
	if len(g) == 0 {
		return false
	}
	path = fold(path)
	for _, p := range g {
		if glob.Match(p, path) {
			return true
		}
	}
	return false
}

// cost is what match costs for a path, in steps: each of its characters is folded, and held against each glob.
func (g globs) cost(path string) int64 {
	if len(g) == 0 {
		return 0
	}
	return int64(len(path)*(8+len(g))) * broker.TextSteps
}

// firstCase returns the first of the characters that differ from r in case alone. The folding of x/text leaves some of them apart (Cherokee).
func firstCase(r rune) rune {
	if r < 0x80 {
		return r
	}
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	return first
}

// fold gives all names that some file system takes for the same one form: it drops case, Unicode composition, and
// hidden characters, among them those that HFS+ and ext4 ignore. On a file system that tells such names apart, a glob hides them all.
func fold(s string) string {
	seen := strings.Map(func(r rune) rune {
		if visible.Hidden(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return firstCase(r)
	}, s)
	return norm.NFD.String(cases.Fold().String(norm.NFD.String(seen)))
}
