package elicitation

import (
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

// Kind is the kind of a field's value.
type Kind string

// Kinds of fields, with the Go types of their values.
const (
	Text    Kind = "text"    // string
	Number  Kind = "number"  // float64
	Integer Kind = "integer" // float64 without a fraction
	Boolean Kind = "boolean" // bool
	Choice  Kind = "choice"  // string: one of Options
	Choices Kind = "choices" // []any of strings: some of Options
)

// Field is one field of a form. Its texts are safe to show; Name and the values of options are the server's.
type Field struct {
	Name, Title, Description string
	Kind                     Kind
	Required                 bool
	// Default is the value proposed by the server, or nil.
	Default any
	// Options are the options of Choice and Choices.
	Options []Option
	// Format is the format of a Text: "email", "uri", "date", "date-time" or empty.
	Format string

	pattern              *regexp.Regexp
	minLength, maxLength *int // of Text in characters, of Choices in options
	minimum, maximum     *float64
	// schema has the accepted keywords of the server's schema.
	schema map[string]any
}

// Option is an option of a Choice or Choices.
type Option struct{ Value, Title string }

// Label is the field's title, or else its name.
func (f *Field) Label() string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// Lengths returns the least and the most characters of a Text. The default of most is maxAnswered.
func (f *Field) Lengths() (least, most int) {
	most = maxAnswered
	if f.minLength != nil {
		least = *f.minLength
	}
	if f.maxLength != nil {
		most = min(most, *f.maxLength)
	}
	return least, most
}

// Check validates and normalizes a value. The error is a *Problem.
func (f *Field) Check(value any) (any, error) {
	switch f.Kind {
	case Boolean:
		if b, ok := value.(bool); ok {
			return b, nil
		}
		return nil, problem(f, "must be yes or no", "は「はい」か「いいえ」で答えてください")
	case Number, Integer:
		return f.checkNumber(value)
	case Choices:
		return f.checkChoices(value)
	}
	text, ok := value.(string)
	if !ok || len(text) > maxAnswered || !utf8.ValidString(text) {
		return nil, problem(f, "must be a text of at most %d bytes", "は %d バイト以内の文字列にしてください", maxAnswered)
	}
	if f.Kind == Choice {
		if !f.offers(text) {
			return nil, problem(f, "must be one of the options", "は選択肢から選んでください")
		}
		return text, nil
	}
	return f.checkText(text)
}

func (f *Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func (f *Field) checkNumber(value any) (any, error) {
	n, ok := value.(float64)
	switch {
	case !ok || math.IsNaN(n) || math.IsInf(n, 0):
		return nil, problem(f, "must be a number", "は数値にしてください")
	case f.Kind == Integer && n != math.Trunc(n):
		return nil, problem(f, "must be a whole number", "は整数にしてください")
	case f.minimum != nil && n < *f.minimum:
		return nil, problem(f, "must be at least %v", "は %v 以上にしてください", *f.minimum)
	case f.maximum != nil && n > *f.maximum:
		return nil, problem(f, "must be at most %v", "は %v 以下にしてください", *f.maximum)
	}
	return n, nil
}

func (f *Field) checkChoices(value any) (any, error) {
	list, ok := value.([]any)
	least, most := f.Lengths()
	seen := map[string]bool{}
	for _, item := range list {
		text, isText := item.(string)
		if !isText || !f.offers(text) || seen[text] {
			return nil, problem(f, "must be some of the options, each once", "は選択肢から重複なく選んでください")
		}
		seen[text] = true
	}
	if !ok || len(list) < least || len(list) > most {
		return nil, problem(f, "must be %d to %d of the options", "は %d 個から %d 個まで選んでください", least,
			min(most, len(f.Options)))
	}
	return list, nil
}

// formats are the formats of the specification, with the description shown to people.
var formats = map[string]struct {
	fits        func(string) bool
	english, ja string
}{
	"email": {fits: func(s string) bool {
		a, err := mail.ParseAddress(s)
		return err == nil && a.Address == s
	}, english: "must be an e-mail address", ja: "はメールアドレスにしてください"},
	"uri": {fits: func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Scheme != ""
	}, english: "must be a URL", ja: "は URL にしてください"},
	"date": {fits: func(s string) bool {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}, english: "must be a date such as 2026-01-31", ja: "は 2026-01-31 の形の日付にしてください"},
	"date-time": {fits: func(s string) bool {
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}, english: "must be a time such as 2026-01-31T09:00:00+09:00", ja: "は 2026-01-31T09:00:00+09:00 の形の日時にしてください"},
}

func (f *Field) checkText(text string) (any, error) {
	least, most := f.Lengths()
	n := utf8.RuneCountInString(text)
	switch format, ok := formats[f.Format]; {
	case n < least:
		return nil, problem(f, "must have at least %d characters", "は %d 文字以上にしてください", least)
	case n > most:
		return nil, problem(f, "must have at most %d characters", "は %d 文字以内にしてください", most)
	case ok && !format.fits(text):
		return nil, problem(f, format.english, format.ja)
	case f.pattern != nil && !f.pattern.MatchString(text):
		return nil, problem(f, "must match the pattern %s", "はパターン %s に合わせてください", visible.Text(f.pattern.String()))
	}
	return text, nil
}

// Read parses typed input: yes or no for a Boolean; an option or its number, from 1, for a Choice; several of them,
// separated by commas, for Choices. It fails with a *Problem, also if the input for a required field is empty.
func (f *Field) Read(typed string) (any, error) {
	typed = strings.TrimSpace(typed)
	if typed == "" && f.Required {
		return nil, missing(f)
	}
	switch f.Kind {
	case Boolean:
		switch strings.ToLower(typed) {
		case "y", "yes", "true", "はい":
			return true, nil
		case "n", "no", "false", "いいえ":
			return false, nil
		}
		return f.Check(typed)
	case Number, Integer:
		n, err := strconv.ParseFloat(typed, 64)
		if err != nil {
			return f.Check(typed)
		}
		return f.Check(n)
	case Choice:
		return f.Check(f.chosen(typed))
	case Choices:
		var list []any
		for part := range strings.SplitSeq(typed, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, f.chosen(part))
			}
		}
		return f.Check(list)
	}
	return f.Check(typed)
}

// chosen returns the value of an option given by its number, value or title.
func (f *Field) chosen(typed string) string {
	if i, err := strconv.Atoi(typed); err == nil && !f.offers(typed) && i >= 1 && i <= len(f.Options) {
		return f.Options[i-1].Value
	}
	for _, o := range f.Options {
		if o.Title == typed {
			return o.Value
		}
	}
	return typed
}
