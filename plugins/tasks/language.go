package main

import (
	"context"
	"fmt"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

// language is one that texts are written in: a BCP 47 tag.
type language string

// languageOf returns the caller's.
func languageOf(ctx context.Context) language { return language(pdk.Locale(ctx)) }

func (l language) pick(en, ja string) string { return locale.Text{"en": en, "ja": ja}.In(string(l)) }

// sprintf formats a text; both formats get the same arguments.
func (l language) sprintf(en, ja string, args ...any) string {
	return fmt.Sprintf(l.pick(en, ja), args...)
}

// refuse formats a failure that the caller can repair; both formats get the same arguments.
func refuse(en, ja string, args ...any) error { return locale.Text{"en": en, "ja": ja}.Errorf(args...) }
