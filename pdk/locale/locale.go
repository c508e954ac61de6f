// Package locale has texts and errors in several languages.
//
//	var noFile = locale.Text{"en": "there is no file %q", "ja": "ファイル %q はありません"}
//
//	return nil, noFile.Errorf(path)
//
// The PDK gives callers the text of such an error in their language, also where another error wraps it.
package locale

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text is a text by language, a BCP 47 tag such as "en" or "ja". It may be a format of package fmt.
type Text map[string]string

// In returns the text for language, a BCP 47 tag, found as RFC 4647 section 3.4 looks up: the tag, then shortened at each "-",
// then "en"; without any of these the first language by name. An empty Text gives "".
func (t Text) In(language string) string {
	for tag := strings.ToLower(language); tag != ""; tag = tag[:max(0, strings.LastIndexByte(tag, '-'))] {
		for have, text := range t {
			if strings.EqualFold(have, tag) {
				return text
			}
		}
	}
	if text, ok := t["en"]; ok || len(t) == 0 {
		return text
	}
	return t[slices.Min(slices.Collect(maps.Keys(t)))]
}

// Errorf formats an error in every language of t with the same args, which a language may order anew ("%[2]s"). An argument that is
// such an error too is put in the same language. One %w wraps, as with [fmt.Errorf].
func (t Text) Errorf(args ...any) *Error { return &Error{t, args} }

// Error is an error in several languages. It must not be changed while it is used.
type Error struct {
	format Text
	args   []any
}

// Error returns the text as [Text.In] does without a language.
func (e *Error) Error() string { return e.In("") }

// In returns the text for language, as [Text.In] does.
func (e *Error) In(language string) string { return e.in(language).Error() }

// Unwrap returns the error that the format wraps, or nil.
func (e *Error) Unwrap() error { return errors.Unwrap(e.in("")) }

func (e *Error) in(language string) error {
	args := slices.Clone(e.args)
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = translated{err, language}
		}
	}
	return fmt.Errorf(e.format.In(language), args...)
}

// translated is an error whose text is in a language.
type translated struct {
	error
	language string
}

func (t translated) Error() string { return In(t.error, t.language) }

func (t translated) Unwrap() error { return t.error }

// In returns the text of err for language: that of the first Error in its chain, or else its only one. A nil error has none.
func In(err error, language string) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.In(language)
	}
	return err.Error()
}
