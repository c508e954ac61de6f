package strictyaml

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Value is one value of a document. Its methods report what does not fit and leave the destination as it was.
type Value struct {
	doc  *document
	node *yaml.Node
	path string
}

// Fields describes how the keys of an object are read, by name.
type Fields map[string]func(Value)

// Problem reports that v breaks a rule. Values that are a [locale.Error] are in the language of the problem.
func (v Value) Problem(format string, args ...any) {
	v.doc.problem(v.node, v.path, format, args...)
}

// Line returns the line in which v starts, counted from 1.
func (v Value) Line() int { return v.node.Line }

// Path returns the place of v in the document, such as "tools[0].inputSchema".
func (v Value) Path() string { return v.path }

// Object reads a mapping whose keys are those of fields, each at most once.
func (v Value) Object(fields Fields) {
	v.entries(func(key *yaml.Node, value Value) {
		if read, ok := fields[key.Value]; ok {
			read(value)
			return
		}
		known := slices.Collect(maps.Keys(fields))
		v.doc.err.add(newProblem(key.Line, key.Column, v.path, "%v", Unknown("key", key.Value, known)))
		if near := Nearest(key.Value, known); near != "" {
			v.doc.reported = append(v.doc.reported, Key(v.path, near))
		}
	})
}

// Map reads a mapping with keys of any name, in the order of the document.
func (v Value) Map(each func(key string, value Value)) {
	v.entries(func(key *yaml.Node, value Value) { each(key.Value, value) })
}

func (v Value) entries(each func(key *yaml.Node, value Value)) {
	if v.node.Kind != yaml.MappingNode {
		v.Problem("must be a mapping (key: value), not %s", describe(v.node))
		return
	}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		each(key, Value{v.doc, v.node.Content[i+1], Key(v.path, key.Value)})
	}
}

// List reads a list.
func (v Value) List(each func(i int, item Value)) {
	if v.node.Kind != yaml.SequenceNode {
		if v.IsText() {
			v.Problem("must be a list, not text: put it in brackets, as in [a, b]")
		} else {
			v.Problem("must be a list, not %s", describe(v.node))
		}
		return
	}
	for i, item := range v.node.Content {
		each(i, Value{v.doc, item, Index(v.path, i)})
	}
}

// IsList reports whether v is a list.
func (v Value) IsList() bool { return v.node.Kind == yaml.SequenceNode }

// IsMap reports whether v is a mapping.
func (v Value) IsMap() bool { return v.node.Kind == yaml.MappingNode }

// IsEmpty reports whether v is a list or a mapping without entries.
func (v Value) IsEmpty() bool { return v.node.Kind != yaml.ScalarNode && len(v.node.Content) == 0 }

// Scalar returns a text, or a number or boolean as it is written. ok is false for anything else.
func (v Value) Scalar() (text string, ok bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() == "!!null" {
		return "", false
	}
	return v.node.Value, true
}

// Apart calls read with v and returns the problems that it reports, as an *Error. The document does not have them.
func (v Value) Apart(read func(Value)) error {
	own := &document{places: v.doc.places}
	read(Value{own, v.node, v.path})
	own.err.sort()
	return own.err.Err()
}

// IsText reports whether v is a text. Dates count as such.
func (v Value) IsText() bool { return v.node.Kind == yaml.ScalarNode && isText(v.node) }

// IsUnset reports whether v is null or an empty text, as programs write out a setting that has no value.
func (v Value) IsUnset() bool {
	return v.node.Kind == yaml.ScalarNode && (v.node.ShortTag() == "!!null" || isText(v.node) && v.node.Value == "")
}

// Text returns a text, or false after reporting that v is something else.
func (v Value) Text() (string, bool) {
	if !v.IsText() {
		if v.node.Kind == yaml.ScalarNode && v.node.ShortTag() != "!!null" {
			v.Problem(`must be text, not %s: for a text write "%s"`, describe(v.node), v.node.Value)
		} else {
			v.Problem("must be text, not %s", describe(v.node))
		}
		return "", false
	}
	return v.node.Value, true
}

// isText reports whether the scalar n is a text; what YAML takes for a timestamp counts as such.
func isText(n *yaml.Node) bool {
	return n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp"
}

// describe names what n is.
func describe(n *yaml.Node) error { return word(kindOf(n)) }

// kindOf returns the English words for what n is.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty: give a value or leave the key out"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}
