package manifest

import (
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
)

// Most characters of a text. A description may be long because models read it; Check finds those that are longer than
// is good.
const (
	maxTitle       = 200
	maxReason      = 500
	maxDescription = 16 << 10
)

// language is the form of the tags that texts are kept under, a part of BCP 47: "en", "ja", "zh-Hant-TW".
var language = lazyregexp.New(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}$`)

// required is text for one that must be there.
func (v *validation) required(path string, t Text, most int) {
	if len(t) == 0 {
		v.Add(path, "is missing: write a text, or one by language (en: ..., ja: ...)")
	}
	v.text(path, t, most)
}

// text checks a text in each of its languages. Only a description may have several lines.
func (v *validation) text(path string, t Text, most int) {
	for _, tag := range keys(t) {
		at, s := strictyaml.Key(path, tag), t[tag]
		if !language().MatchString(tag) {
			v.Add(at, `is not a language tag: write one such as "en" or "ja"`)
		}
		if s == "" {
			v.Add(at, "is empty: write a text or leave it out")
		}
		if most == maxDescription {
			s = lineBreaks.Replace(s)
		}
		v.line(at, s, most)
	}
}

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// line checks a text of one line: at most so many characters, and none that make a reviewer see something else than a
// model or a terminal gets.
func (v *validation) line(path, s string, most int) {
	if n := utf8.RuneCountInString(s); n > most {
		v.Add(path, "has %d characters; at most %d are allowed", n, most)
	}
	if r, found := visible.First(s, ""); found {
		v.Add(path, visible.Problem, r)
	}
}
