package file

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/internal/glob"
	"github.com/hako-run/hako/internal/visible"
)

// globs are the deny globs of a mount, normalized by fold.
type globs []string

func parseGlobs(patterns []string) (globs, error) {
	var g globs
	for _, p := range patterns {
		clean := strings.Trim(strings.TrimPrefix(p, "./"), "/")
		if clean == "" || !glob.Valid(clean) {
			return nil, fmt.Errorf("deny glob %q is malformed: use doublestar syntax relative to the mount, such as "+
				"**/.git/**, with at most four groups in braces", p)
		}
		g = append(g, fold(clean))
	}
	return g, nil
}

// match reports whether a glob hides a path relative to the mount. A glob for a directory hides all below it, so the
// caller must also match each parent.
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

// cost is the price of match for a path, in steps: each byte is folded once and compared with each glob.
func (g globs) cost(path string) int64 {
	if len(g) == 0 {
		return 0
	}
	return int64(len(path)*(8+len(g))) * fuel.TextSteps
}

// firstCase returns the lowest character that differs from r in case alone. The case folding of x/text does not unify
// all of them (Cherokee).
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

// fold normalizes names so that all spellings that some file system treats as one name are equal. It removes case,
// Unicode composition and invisible characters, including those that HFS+ and ext4 ignore. On a file system that
// distinguishes such names, a glob hides them all.
func fold(s string) string {
	seen := strings.Map(func(r rune) rune {
		if visible.Hidden(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return firstCase(r)
	}, s)
	return norm.NFD.String(cases.Fold().String(norm.NFD.String(seen)))
}
