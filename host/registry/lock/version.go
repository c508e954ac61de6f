package lock

import (
	"cmp"
	"slices"
	"strings"
)

// Compare compares two versions by the rules of Semantic Versioning: it is negative if a is older than b. Versions may
// begin with "v", and missing numbers count as 0. ok is false if one of both is no such version.
func Compare(a, b string) (order int, ok bool) {
	x, okA := parseVersion(a)
	y, okB := parseVersion(b)
	return x.compare(y), okA && okB
}

// Newest returns the newest of the tags that is newer than the version current, and "" if none is. Only tags of the
// same form count: 1.4 is compared with 1.5 and 2.0, and 1.4.2 with 1.5.0. Prereleases count if current is one.
func Newest(tags []string, current string) string {
	best, ok := parseVersion(current)
	if !ok {
		return ""
	}
	now, found := best, ""
	for _, tag := range tags {
		v, ok := parseVersion(tag)
		if !ok || v.parts != now.parts || v.prerelease != nil && now.prerelease == nil {
			continue
		}
		if v.compare(best) > 0 {
			best, found = v, tag
		}
	}
	return found
}

// version is a semantic version, perhaps with fewer numbers. Build metadata is ignored.
type version struct {
	numbers    [3]string // without leading zeros; they may be larger than any int
	parts      int
	prerelease []string
}

func parseVersion(text string) (v version, ok bool) {
	if len(text) > maxText {
		return v, false
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	core, prerelease, hasPrerelease := strings.Cut(text, "-")
	numbers := strings.Split(core, ".")
	if v.parts = len(numbers); v.parts > len(v.numbers) {
		return v, false
	}
	for i, number := range numbers {
		if !isNumber(number) || number[0] == '0' && number != "0" {
			return v, false
		}
		v.numbers[i] = strings.TrimPrefix(number, "0")
	}
	if hasPrerelease {
		v.prerelease = strings.Split(prerelease, ".")
	}
	if slices.Contains(v.prerelease, "") {
		return v, false
	}
	return v, true
}

func (v version) compare(w version) int {
	for i := range v.numbers {
		if order := compareNumbers(v.numbers[i], w.numbers[i]); order != 0 {
			return order
		}
	}
	switch {
	case v.prerelease == nil && w.prerelease == nil:
		return 0
	case v.prerelease == nil:
		return 1
	case w.prerelease == nil:
		return -1
	}
	for i := range min(len(v.prerelease), len(w.prerelease)) {
		if order := compareIdentifiers(v.prerelease[i], w.prerelease[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(v.prerelease), len(w.prerelease))
}

// compareNumbers compares decimal numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// compareIdentifiers compares parts of prereleases. Numbers are lower than texts.
func compareIdentifiers(a, b string) int {
	switch isA, isB := isNumber(a), isNumber(b); {
	case isA && isB:
		return compareNumbers(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0"))
	case isA:
		return -1
	case isB:
		return 1
	}
	return strings.Compare(a, b)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
