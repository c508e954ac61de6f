package main

import (
	"fmt"
	"strings"
)

// language is one that errors and notes are written in.
type language string

const (
	japanese language = "ja"
	english  language = "en"
)

// languageOf returns the language for a tag (BCP 47): English for every one but Japanese, and Japanese without one.
func languageOf(tag string) language {
	tag = strings.ToLower(tag)
	if tag == "" || tag == "ja" || strings.HasPrefix(tag, "ja-") {
		return japanese
	}
	return english
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
