package wholefile

import "strings"

// IsTemporary reports whether os.CreateTemp or os.MkdirTemp can have made the name from the pattern, with digits in
// place of the "*". Files of users whose names only begin alike are not temporary.
func IsTemporary(name, pattern string) bool {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	random, begins := strings.CutPrefix(name, prefix)
	random, ends := strings.CutSuffix(random, suffix)
	return begins && ends && random != "" && strings.Trim(random, "0123456789") == ""
}
