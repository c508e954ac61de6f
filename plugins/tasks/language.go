package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// language is one that texts are written in.
type language string

const (
	english  language = "en"
	japanese language = "ja"
)

// languageOf returns the caller's language: Japanese, or else English.
func languageOf(ctx context.Context) language {
	if tag, _, _ := strings.Cut(pdk.Locale(ctx), "-"); strings.EqualFold(tag, "ja") {
		return japanese
	}
	return english
}

func (l language) pick(en, ja string) string {
	if l == japanese {
		return ja
	}
	return en
}

// refusal is a failure that the caller can repair, in two languages.
type refusal struct{ en, ja string }

func (r refusal) Error() string { return r.en }

func (r refusal) in(l language) string { return l.pick(r.en, r.ja) }

// refuse formats a refusal; both formats get the same arguments.
func refuse(en, ja string, args ...any) error {
	return refusal{fmt.Sprintf(en, args...), fmt.Sprintf(ja, args...)}
}
