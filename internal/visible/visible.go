// Package visible makes hidden characters in untrusted text harmless, so that the text cannot show something else than
// it contains. Text and Mark replace them with a mark, Escape and Line with escape sequences, and Clean removes them.
// Writer escapes a stream.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Problem is the text of an error about the first hidden character of a text, which is its argument.
const Problem = "contains the invisible character %U: remove it"

// maxMarks limits the combining marks after one character. More would be drawn over neighboring lines.
const maxMarks = 8

// Hidden reports whether r is invisible, moves a terminal's cursor or changes the order of text: control characters,
// format characters (including directional ones and tags), line separators, variation selectors, fillers, the blank of
// Braille and noncharacters. Some are legitimate between certain characters, which the functions for texts consider.
func Hidden(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return false
	case r == 0x2800, r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef:
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // visible format characters, such as those of Arabic
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}

// joining are the scripts in which the joiners U+200C and U+200D change the form of letters.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer,
	unicode.Myanmar, unicode.Tibetan,
}

const (
	nonJoiner, joiner = 0x200c, 0x200d
	emojiStyle        = 0xfe0f
	keycap            = 0x20e3
)

// unknown is the next character at the end of a piece of a text, and the last one at its start.
const unknown = -1

// walker iterates over a text. The zero value is at its start.
type walker struct {
	last  rune // the last character, 0 if it was hidden
	marks int  // number of consecutive combining marks
}

// hides reports whether r is hidden in its position before next.
func (w *walker) hides(r, next rune) bool {
	if next == utf8.RuneError || next >= 0 && Hidden(next) {
		next = 0 // it will be replaced, so nothing joins it
	}
	hidden := Hidden(r) && !w.joins(r, next)
	if unicode.In(r, unicode.Mn, unicode.Me) {
		w.marks++
		hidden = hidden || w.marks > maxMarks
	} else if !hidden {
		w.marks = 0
	}
	w.last = r
	if hidden {
		w.last = 0 // its replacement joins nothing
	}
	return hidden
}

// joins reports whether r is legitimate between the last character and next: the emoji style after a symbol, the joiner
// between emoji, and both joiners within joining scripts.
func (w *walker) joins(r, next rune) bool {
	switch r {
	case emojiStyle:
		return w.last == unknown || isSymbol(w.last) || next == keycap && strings.ContainsRune("0123456789#*", w.last)
	case joiner, nonJoiner:
		if unicode.In(w.last, joining...) {
			return next == unknown || unicode.In(next, joining...)
		}
		if w.last == unknown {
			return next == unknown || isSymbol(next) || unicode.In(next, joining...)
		}
		return r == joiner && (isSymbol(w.last) || w.last == emojiStyle) && (next == unknown || isSymbol(next))
	}
	return false
}

func isSymbol(r rune) bool { return unicode.IsSymbol(r) || r == '‼' || r == '⁉' }

// replace replaces each hidden character that is not in keep, and each invalid byte, with the result of other.
func replace(text, keep string, other func(part string, r rune) string) string {
	if plain(text) {
		return text
	}
	var w walker
	var b strings.Builder
	w.replace(&b, text, keep, false, other)
	return b.String()
}

// plain reports whether text is printable ASCII, like most text.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// replace appends to b. more reports whether the text continues.
func (w *walker) replace(b *strings.Builder, text, keep string, more bool, other func(part string, r rune) string) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		part, next := text[:size], rune(unknown)
		if text = text[size:]; len(text) > 0 {
			next, _ = utf8.DecodeRuneInString(text)
		} else if !more {
			next = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			w.last = 0
			b.WriteString(other(part, r))
		case r < ' ' && strings.ContainsRune(keep, r), r == '\r' && next == '\n' && strings.Contains(keep, "\n"):
			w.last, w.marks = r, 0
			b.WriteString(part)
		case w.hides(r, next):
			b.WriteString(other(part, r))
		default:
			b.WriteString(part)
		}
	}
}

// Text returns text with a mark (␦) for each hidden character except line feeds, and for invalid UTF-8.
func Text(text string) string {
	return replace(text, "\n", func(string, rune) string { return "␦" })
}

// Mark is Text but keeps tabs.
func Mark(text string) string {
	return replace(text, "\n\t", func(string, rune) string { return "␦" })
}

// Piece is Mark for a piece of a longer text. It keeps characters that may join it with its neighbors.
func Piece(text string) string {
	if plain(text) {
		return text
	}
	w := walker{last: unknown}
	var b strings.Builder
	w.replace(&b, text, "\n\t", true, func(string, rune) string { return "␦" })
	return b.String()
}

// Clean returns text without hidden characters, except line feeds and tabs, and without invalid UTF-8.
func Clean(text string) string {
	return replace(text, "\n\t", func(string, rune) string { return "" })
}

// Escape returns text with an escape sequence, such as \u001b, for each hidden character except line feeds and tabs. In
// JSON strings the meaning is unchanged. Invalid UTF-8 becomes \ufffd.
func Escape(text string) string { return replace(text, "\n\t", escape) }

// Line is Escape for a single line: it escapes line feeds and tabs too.
func Line(text string) string { return replace(text, "", escape) }

func escape(_ string, r rune) string {
	if r == '\n' {
		return `\n`
	}
	if r == '\t' {
		return `\t`
	}
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// First returns the first hidden character of text that is not in keep, and whether there is one.
func First(text, keep string) (first rune, found bool) {
	replace(text, keep, func(_ string, r rune) string {
		if !found {
			first, found = r, true
		}
		return ""
	})
	return first, found
}
