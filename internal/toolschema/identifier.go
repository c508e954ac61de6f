package toolschema

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Identifier replaces characters of name other than letters, digits and extra with "_", and cuts it to limit bytes.
func Identifier(name, extra string, limit int) string {
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

// Identifiers maps each name to a distinct identifier that a provider accepts. The identifier of a name does not depend
// on the other names, unless two collide: then a part of their hash is appended to both.
func Identifiers(names []string, extra string, limit int) map[string]string {
	safe, taken := map[string]string{}, map[string]int{}
	for _, name := range names {
		if _, ok := safe[name]; !ok {
			safe[name] = Identifier(name, extra, limit)
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

// hashed appends a part of the hash of name to s.
func hashed(name, s string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:6])
	return s[:min(len(s), limit-len(suffix))] + suffix
}
