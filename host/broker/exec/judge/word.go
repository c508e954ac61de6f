package judge

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// literal returns the fields that a word becomes, if that does not depend on variables, commands or files. Quotes, escapes and
// braces are worked out.
func literal(word *syntax.Word) (fields []string, known bool) {
	if !constant(word.Parts, false) {
		return nil, false
	}
	fields, err := expand.Fields(&expand.Config{}, word)
	return fields, err == nil
}

// fieldsOf returns the words of a text, if none depends on variables, commands or files.
func fieldsOf(text string) (fields []string, known bool) {
	known = true
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(text)) {
		if err != nil {
			return nil, false
		}
		more, ok := literal(word)
		fields, known = append(fields, more...), known && ok
	}
	return fields, known
}

func constant(parts []syntax.WordPart, quoted bool) bool {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !quoted && (hasGlob(part.Value) || i == 0 && strings.HasPrefix(part.Value, "~")) {
				return false
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if part.Dollar || !constant(part.Parts, true) { // $"..." is looked up in a catalogue of translations
				return false
			}
		case *syntax.BraceExp:
			for _, element := range part.Elems {
				if !constant(element.Parts, quoted) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// hasGlob reports whether unquoted text has a character of patterns that is not escaped.
func hasGlob(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// quoteAll writes arguments as a shell would read them.
func quoteAll(argv []string) string {
	quoted := make([]string, len(argv))
	for i, argument := range argv {
		text, err := syntax.Quote(argument, syntax.LangBash)
		if err != nil {
			text = "'?'" // holds what no shell can spell
		}
		quoted[i] = text
	}
	return strings.Join(quoted, " ")
}
