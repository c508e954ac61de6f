package mcpclient

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// withoutComments returns JSON with its comments, those of JSONC, as spaces, so that positions stay. Other documents
// are returned as they are: "//" is part of a text in YAML.
func withoutComments(data []byte) []byte {
	plain := bytes.Clone(data)
	first := make([]byte, 0, 2) // of what is not space
	for i := 0; i < len(plain); i++ {
		rest := plain[i:]
		length := 0
		switch {
		case i == 0 && bytes.HasPrefix(rest, []byte("\ufeff")):
			i += len("\ufeff") - 1
			continue
		case bytes.HasPrefix(rest, []byte("//")):
			length = bytes.IndexByte(rest, '\n')
		case bytes.HasPrefix(rest, []byte("/*")):
			if length = bytes.Index(rest[2:], []byte("*/")); length >= 0 {
				length += len("/**/")
			}
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			continue
		default:
			if len(first) < cap(first) {
				first = append(first, rest[0])
			}
			if first[0] != '{' || len(first) == 2 && first[1] != '"' && first[1] != '}' {
				return data
			}
			if rest[0] == '"' {
				i += quotedLength(rest) - 1
			}
			continue
		}
		if length < 0 {
			length = len(rest)
		}
		for j := range rest[:length] {
			if rest[j] != '\n' {
				rest[j] = ' '
			}
		}
		i += length - 1
	}
	return plain
}

// quotedLength returns the length of the JSON text that b begins with, or of b if the text does not end.
func quotedLength(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// readInputs reads the "inputs" of VS Code, values that it asks a person for: the defaults of those that are no
// passwords, by id.
func readInputs(dst map[string]string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if !v.IsList() {
			return // it belongs to another program
		}
		v.List(func(_ int, v strictyaml.Value) {
			if !v.IsMap() {
				return
			}
			id, value, password := "", "", false
			v.Map(func(key string, v strictyaml.Value) {
				text, _ := v.Scalar()
				switch key {
				case "id":
					id = text
				case "default":
					value = text
				case "password":
					password = text == "true"
				}
			})
			if value != "" && !password {
				dst[id] = value
			}
		})
	}
}

// placeholder matches the placeholders of clients that name a kind, such as ${input:token}.
var placeholder = lazyregexp.New(`\$\{([A-Za-z][A-Za-z0-9_]*):([^-}][^}]*)\}`)

// fill returns text with the inputs that have a default. It reports placeholders that have no meaning here.
func (r reader) fill(v strictyaml.Value, text string) string {
	return placeholder().ReplaceAllStringFunc(text, func(ref string) string {
		parts := placeholder().FindStringSubmatch(ref)
		kind, name := parts[1], parts[2]
		if kind == "env" && reference().MatchString(ref) {
			return ref
		}
		if value, ok := r.inputs[name]; ok && kind == "input" {
			return value
		}
		switch kind {
		case "input":
			v.Problem("nobody can be asked for %s: write ${NAME} and set the variable NAME where hako runs, or for a "+
				`value of env or headers {"file": PATH}`, ref)
		default:
			v.Problem("%s has no meaning here: write the value, or ${NAME} for a variable of hako's environment", ref)
		}
		return ref
	})
}

// text reads a text that is not empty, with its placeholders.
func (r reader) text(dst *string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		strictyaml.String(dst)(v)
		*dst = r.fill(v, *dst)
	}
}

// address reads the URL, which has several names. Two of them have to agree.
func (r reader) address(dst *string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		before := *dst
		r.text(dst)(v)
		if before != "" && before != *dst {
			v.Problem("the address is there twice and differs: keep url alone")
		}
	}
}

// patterns reads names of tools. They are added to dst.
func patterns(dst *[]string) func(strictyaml.Value) { return strictyaml.Strings(dst) }

// noted skips a setting of another client that hako has its own rules for, and notes that.
func (s *Spec) noted(why string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if text, scalar := v.Scalar(); scalar && text == "false" || v.IsEmpty() {
			return
		}
		key := v.Path()[strings.LastIndexByte(v.Path(), '.')+1:]
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s", key, why))
		slices.Sort(s.Notes)
	}
}

// refused reports a setting of another client that would change what the server does.
func refused(remedy string) func(strictyaml.Value) {
	return func(v strictyaml.Value) { v.Problem("is a setting of another client: %s", remedy) }
}
