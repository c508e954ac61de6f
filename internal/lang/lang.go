// Package lang decides between the languages that hako has texts in: Japanese and English.
package lang

import (
	"strings"
	"unicode"
)

// Japanese reports whether a BCP 47 tag such as "ja-JP" stands for Japanese. Everybody else reads English.
func Japanese(tag string) bool { return strings.HasPrefix(strings.ToLower(tag), "ja") }

// Of returns "ja" for a message that is written in Japanese, and "" for others. Foreign words within it do not matter,
// nor does a Japanese name in an English sentence: a message is Japanese if it has at least as many Japanese characters
// as words in Latin letters.
func Of(message string) string {
	characters, words, inWord := 0, 0, false
	for _, r := range message {
		if isJapanese(r) {
			characters++
		}
		latin := unicode.Is(unicode.Latin, r) || r == '\'' || r == '’'
		if latin && !inWord {
			words++
		}
		inWord = latin
	}
	if characters > 0 && characters >= words {
		return "ja"
	}
	return ""
}

func isJapanese(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }
