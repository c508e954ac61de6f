package mcpclient

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxName bounds a name at the frontends, prefix included, in bytes: all clients and model providers accept it.
const maxName = 64

// safe replaces characters that names at the frontends may not contain.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// safeNames maps each of a server's names to a valid name of at most room bytes. A valid name stays unchanged. Names
// that would be too long or equal get a digest of the whole name at the end, so that a tool has the same name after
// each start. Repeated names, and names that still collide, are omitted.
func safeNames(names []string, room int) map[string]string {
	wanted := map[string]int{}
	for _, name := range names {
		wanted[safe(name)]++
	}
	given, taken := map[string]string{}, map[string]bool{}
	// Valid names come first.
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

// digested returns the beginning of the safe name and eight digits of its digest.
func digested(name string, room int) string {
	sum := sha256.Sum256([]byte(name))
	end := "_" + hex.EncodeToString(sum[:4])
	begin := safe(name)
	return begin[:min(len(begin), room-len(end))] + end
}
