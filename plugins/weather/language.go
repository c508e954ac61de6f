package main

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
)

// language is one that answers are written in.
type language string

const (
	japanese language = "ja"
	english  language = "en"
)

// languageOf returns the language of the first tag (BCP 47) that is given: English for "en" and for any other than
// Japanese. Without one it is Japanese.
func languageOf(tags ...string) language {
	tag := strings.ToLower(cmp.Or(tags...))
	if tag == "" || tag == "ja" || strings.HasPrefix(tag, "ja-") {
		return japanese
	}
	return english
}

// scriptOf returns "ja" for a text in Japanese script, which says more about who asks than a client's setting, and ""
// for another.
func scriptOf(text string) string {
	if strings.ContainsFunc(text,
		func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }) {
		return "ja"
	}
	return ""
}

func (l language) pick(ja, en string) string {
	if l == japanese {
		return ja
	}
	return en
}

func (l language) sprintf(ja, en string, args ...any) string {
	return fmt.Sprintf(l.pick(ja, en), args...)
}

func (l language) errorf(ja, en string, args ...any) error {
	return fmt.Errorf(l.pick(ja, en), args...)
}

// list joins names as the language does.
func (l language) list(names []string) string { return strings.Join(names, l.pick("、", ", ")) }
