package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// node is a JSON value with its members in their order.
type node struct {
	kind    jsontext.Kind
	text    string // of a scalar, and the JSON of others
	members []member
	items   []node
}

type member struct {
	name  string
	value node
}

// parseArguments reads arguments, also those with a name twice: everything is shown.
func parseArguments(arguments json.RawMessage) node {
	n, err := newNode(jsontext.Value(arguments), 0)
	if err != nil {
		return node{kind: '"', text: string(arguments)}
	}
	return n
}

// newNode reads members and items down to the level that is shown. Reading a level again bounds the work to so many
// times the length.
func newNode(raw jsontext.Value, depth int) (node, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	token, err := decoder.ReadToken()
	if err != nil {
		return node{}, err
	}
	n := node{kind: token.Kind(), text: string(raw)}
	if n.kind != '{' && n.kind != '[' {
		n.text = token.String()
		return n, nil
	}
	if depth > maxNesting+1 {
		return n, nil
	}
	for decoder.PeekKind() != '}' && decoder.PeekKind() != ']' {
		var name string
		if n.kind == '{' {
			token, err := decoder.ReadToken()
			if err != nil {
				return node{}, err
			}
			name = token.String()
		}
		inner, err := decoder.ReadValue()
		if err != nil {
			return node{}, err
		}
		value, err := newNode(bytes.Clone(inner), depth+1)
		if err != nil {
			return node{}, err
		}
		if n.kind == '{' {
			n.members = append(n.members, member{name, value})
		} else {
			n.items = append(n.items, value)
		}
	}
	return n, nil
}

// isScalar reports whether a value fits into a cell of a table.
func (n node) isScalar() bool { return n.kind != '{' && n.kind != '[' }

// values returns the members of an object, also of nested ones, or a single value without a name.
func (n node) values(prefix string, depth int, w *words) (list []Value) {
	if n.kind != '{' || len(n.members) == 0 || depth > maxNesting {
		return []Value{n.value(prefix, w)}
	}
	for _, m := range n.members {
		name := nameOf(m.name)
		if prefix != "" {
			name = prefix + "." + name
		}
		list = append(list, m.value.values(name, depth+1, w)...)
	}
	return list
}

// nameOf shows a name, which a caller may have invented, on one line.
func nameOf(name string) string {
	return clip.Runes(visible.Line(name), maxName)
}

func (n node) value(name string, w *words) Value {
	v := Value{Name: name}
	switch {
	case n.kind == '[' && n.isTable():
		v.table(n.items, w)
	case n.kind == '[' && n.isList():
		cells := make([]string, len(n.items))
		for i, item := range n.items {
			cells[i] = item.cell(w)
		}
		v.Text = strings.Join(cells, ", ")
		if utf8.RuneCountInString(v.Text) > maxLine {
			v.Text = strings.Join(cells, "\n")
		}
	default:
		v.Text = n.cell(w)
	}
	if len(v.Text) > maxText {
		v.Cut = fmt.Sprintf(w.cutText, utf8.RuneCountInString(v.Text))
		v.Text = clip.Bytes(v.Text, maxText)
	}
	return v
}

// cell is the text of a value for people.
func (n node) cell(w *words) string {
	switch {
	case n.kind == 't':
		return w.yes
	case n.kind == 'f':
		return w.no
	case n.kind == 'n', n.kind == '"' && n.text == "", n.kind == '{' && n.text == "{}", n.kind == '[' && n.text == "[]":
		return w.empty
	}
	return visible.Text(n.text)
}

// isList reports whether all items are scalars.
func (n node) isList() bool {
	for _, item := range n.items {
		if !item.isScalar() {
			return false
		}
	}
	return len(n.items) > 0
}

// isTable reports whether all items are objects, or all are lists, of scalars.
func (n node) isTable() bool {
	for _, item := range n.items {
		if item.kind != n.items[0].kind || item.isScalar() || len(item.members)+len(item.items) == 0 {
			return false
		}
		for _, m := range item.members {
			if !m.value.isScalar() {
				return false
			}
		}
		if item.kind == '[' && !item.isList() {
			return false
		}
	}
	return len(n.items) > 0
}

func (v *Value) table(items []node, w *words) {
	var columns []string
	index := map[string]int{}
	for _, item := range items {
		for _, m := range item.members {
			if _, known := index[m.name]; !known {
				index[m.name] = len(columns)
				columns = append(columns, nameOf(m.name))
			}
		}
	}
	width := len(columns)
	for _, item := range items {
		width = max(width, len(item.items))
	}
	for _, item := range items[:min(len(items), maxRows)] {
		row := make([]string, min(width, maxColumns))
		put := func(i int, n node) {
			if i < len(row) {
				row[i] = clip.Runes(visible.Line(n.cell(w)), maxLine)
			}
		}
		for _, m := range item.members {
			put(index[m.name], m.value)
		}
		for i, cell := range item.items {
			put(i, cell)
		}
		v.Rows = append(v.Rows, row)
	}
	v.Columns = columns[:min(len(columns), maxColumns)]
	if len(items) > maxRows || width > maxColumns {
		v.Cut = fmt.Sprintf(w.cutTable, len(items), width)
	}
}

// maxIndentation bounds the indentation in JSON, in bytes for each byte of the arguments. Values within thousands of
// others would have more than a thousand.
const maxIndentation = 8
