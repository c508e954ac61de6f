package terminal

import (
	"strings"
	"unicode/utf8"
)

// Summary returns the first sentence of a description, shortened to fit a line.
func Summary(description string) string {
	const most = 80
	text, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	text = Sentence(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Sentence returns the first sentence of text. A sentence in brackets is part of the one around it.
func Sentence(text string) string {
	depth := 0
	for i, r := range text {
		switch {
		case strings.ContainsRune("(（「", r):
			depth++
		case strings.ContainsRune(")）」", r):
			depth--
		case depth <= 0 && (r == '。' || r == '.' && strings.HasPrefix(text[i:], ". ")):
			return text[:i+utf8.RuneLen(r)]
		}
	}
	return text
}
