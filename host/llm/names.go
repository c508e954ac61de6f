package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// identifier makes name one of letters, digits and extra, at most limit bytes long. A name that is one already stays as it is.
func identifier(name, extra string, limit int) string {
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || strings.ContainsRune(extra, r)) {
			return r
		}
		return '_'
	}, name)
	if safe == "" {
		safe = "_"
	}
	return safe[:min(len(safe), limit)]
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// identifiers maps names to ones that a provider accepts, each to another. Which it is depends neither on the order nor on the other
// names, but where two would be the same: then both get a part of their hash.
func identifiers(names []string, extra string, limit int) map[string]string {
	safe, taken := map[string]string{}, map[string]int{}
	for _, name := range names {
		if _, ok := safe[name]; !ok {
			safe[name] = identifier(name, extra, limit)
			taken[safe[name]]++
		}
	}
	for name, s := range safe {
		if taken[s] > 1 && s != name {
			safe[name] = hashed(name, s, limit)
		}
	}
	return safe
}

// hashed ends s in a part of the hash of name.
func hashed(name, s string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:6])
	return s[:min(len(s), limit-len(suffix))] + suffix
}
