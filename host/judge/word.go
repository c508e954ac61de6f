package judge

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// literal returns the fields that a word expands to, if they do not depend on variables, commands or files. It expands
// quotes, escapes and braces.
func literal(word *syntax.Word) (fields []string, known bool) {
	if !constant(word.Parts, false) {
		return nil, false
	}
	fields, err := expand.Fields(&expand.Config{}, word)
	return fields, err == nil
}

// fieldsOf returns the fields of a text, if they do not depend on variables, commands or files.
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
			if part.Dollar || !constant(part.Parts, true) { // $"..." is translated
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

// hasGlob reports whether unquoted text has an unescaped pattern character.
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

// quoteAll quotes arguments for a shell.
func quoteAll(argv []string) string {
	quoted := make([]string, len(argv))
	for i, argument := range argv {
		text, err := syntax.Quote(argument, syntax.LangBash)
		if err != nil {
			text = "'?'" // it contains characters that a shell cannot quote
		}
		quoted[i] = text
	}
	return strings.Join(quoted, " ")
}
