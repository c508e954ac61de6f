// Package clip shortens texts for people, logs and records, never within a character: Bytes and Runes cut at a limit,
// Marked says that it has cut. All return copies, so that who keeps one does not keep the larger text from which it comes.
package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bytes returns at most the first limit bytes of text, without what is not valid UTF-8.
func Bytes(text string, limit int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), limit)], ""))
}

// Marked is Bytes with an ellipsis after what was cut; a text that is short enough stays as it is.
func Marked(text string, limit int) string {
	if len(text) <= limit {
		return strings.Clone(text)
	}
	return Bytes(text, limit) + "…"
}

// Runes returns text, or as much of its beginning as makes limit characters with the ellipsis after it.
func Runes(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return strings.Clone(text)
	}
	return strings.TrimRightFunc(string([]rune(text)[:limit-1]), unicode.IsSpace) + "…"
}
