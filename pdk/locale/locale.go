// Package locale provides texts and errors in several languages.
//
//	var noFile = locale.Text{"en": "there is no file %q", "ja": "ファイル %q はありません"}
//
//	return nil, noFile.Errorf(path)
//
// A caller gets the text of such an error in its language, also if another error wraps it.
package locale

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text maps languages, BCP 47 tags such as "en" or "ja", to texts. A text may be a format of package fmt.
type Text map[string]string

// In returns the text for language, a BCP 47 tag, by the lookup of RFC 4647 section 3.4: the tag, then the tag
// shortened at each "-", then "en"; without any of these the alphabetically first language. For an empty Text it is "".
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

// Errorf returns an error that formats args in any language of t. A language may reorder them ("%[2]s"). Arguments that
// are such errors themselves are formatted in the same language. One %w wraps, as with [fmt.Errorf].
func (t Text) Errorf(args ...any) *Error { return &Error{t, args} }

// Error is an error in several languages.
type Error struct {
	format Text
	args   []any
}

// Error returns the text without a preferred language.
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

// translated is an error with its text in a language.
type translated struct {
	error
	language string
}

func (t translated) Error() string { return In(t.error, t.language) }

func (t translated) Unwrap() error { return t.error }

// In returns the text of err for language: that of the first Error in its chain, or else err.Error. It is "" for nil.
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
