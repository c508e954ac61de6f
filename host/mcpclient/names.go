package mcpclient

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxName is the longest name at the frontends, prefix included, in bytes: what every client and provider of models
// takes.
const maxName = 64

// safe replaces what names at the frontends may not hold.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// safeNames gives each of a server's names one of at most room bytes that frontends take. A name that is fit already
// keeps it; of others that would come out the same, or too long, the end is a digest of the whole, so that the same
// tool has the same name after every start. A name that is there twice, or still is not its own, is left out.
func safeNames(names []string, room int) map[string]string {
	wanted := map[string]int{}
	for _, name := range names {
		wanted[safe(name)]++
	}
	given, taken := map[string]string{}, map[string]bool{}
	// Those that are fit come first.
	ordered := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(boolOrder(safe(a) != a, safe(b) != b), cmp.Compare(a, b))
	})
	for _, name := range ordered {
		short := safe(name)
		if len(short) > room || short != name && wanted[short] > 1 {
			short = digested(name, room)
		}
		if _, again := given[name]; again || taken[short] || name == "" {
			continue
		}
		given[name], taken[short] = short, true
	}
	return given
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// digested is the beginning of the safe name and eight digits that tell it from others.
func digested(name string, room int) string {
	sum := sha256.Sum256([]byte(name))
	end := "_" + hex.EncodeToString(sum[:4])
	begin := safe(name)
	return begin[:min(len(begin), room-len(end))] + end
}
