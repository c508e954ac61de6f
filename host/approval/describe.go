package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// Limits of a Description. Longer texts are cut, with a note. Question.JSON always has everything.
const (
	maxValues  = 40
	maxText    = 2000 // bytes of one value
	maxLine    = 120  // characters of a value on one line
	maxRows    = 20
	maxColumns = 8
	maxName    = 80       // characters of an argument's name
	maxNesting = 3        // objects within objects that are shown as values of their own
	maxShown   = 32 << 10 // bytes of all values
)

// Description shows a question to people. Each frontend lays out its parts in its own way. Hidden characters are
// escaped in all of them.
type Description struct {
	// Ask is the question itself. About is a sentence about the tool.
	Ask   string `json:"ask"`
	About string `json:"about,omitempty"`
	// Detail is an operation within the call, such as a command.
	Detail string `json:"detail,omitempty"`
	// Values are the arguments.
	Values []Value `json:"values,omitempty"`
	// Effects are sentences about what the tool may do.
	Effects []string `json:"effects,omitempty"`
	// Facts say who asks, why a person is asked, and who may answer if that is not the caller.
	Facts []Fact `json:"facts"`
}

// Fact is a named text.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Value is one argument: a text, a table if Rows has any, or a comparison if Diff has any.
type Value struct {
	// Name is the argument's name, with those of the objects around it before it: a.b.
	Name string `json:"name"`
	// Text may have several lines.
	Text string `json:"text,omitempty"`
	// Columns are the names of the table's columns; empty if they have none.
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
	// Diff compares the argument with the value that it replaces: lines after "- ", "+ " or two spaces. Other lines say
	// where the following ones are.
	Diff []string `json:"diff,omitempty"`
	// Cut notes how much was left out, and the totals of a comparison.
	Cut string `json:"cut,omitempty"`
}

// Describe returns the question for people in language, a BCP 47 tag: Japanese, or else English.
func (q *Question) Describe(language string) *Description {
	w := wordsIn(language)
	name := q.Tool
	if title := q.Title.In(language); title != "" && title != name {
		name = fmt.Sprintf("%s (%s)", title, q.Tool)
	}
	d := &Description{
		Ask: fmt.Sprintf(w.ask, visible.Line(name)), About: visible.Line(q.About.In(language)),
		Detail: visible.Text(q.Detail),
	}
	if n := parseArguments(q.Arguments); n.kind != '{' && n.text != "" || len(n.members) > 0 {
		d.Values = n.values("", 0, w)
		size, shown := 0, 0
		for shown < min(len(d.Values), maxValues) && size <= maxShown {
			v := &d.Values[shown]
			if q.Replaces != nil && v.Name == q.Replaces.Argument {
				q.Replaces.describe(v, language, w)
			}
			size += v.size()
			shown++
		}
		if rest := len(d.Values) - shown; rest > 0 {
			d.Values = append(d.Values[:shown], Value{Cut: fmt.Sprintf(w.cutValues, rest)})
		}
	}
	if q.Destructive {
		d.Effects = append(d.Effects, w.destructive)
	}
	if q.OpenWorld {
		d.Effects = append(d.Effects, w.openWorld)
	}
	d.Facts = append(d.Facts, Fact{w.who, visible.Line(q.asker(w))})
	if q.Via != "" {
		d.Facts = append(d.Facts, Fact{w.via, visible.Line(q.Via)})
	}
	if reason := q.Reason.In(language); reason != "" {
		d.Facts = append(d.Facts, Fact{w.why, fmt.Sprintf(w.rule, visible.Line(reason), visible.Line(q.Rule))})
	}
	if !q.Approvers.IsZero() {
		d.Facts = append(d.Facts, Fact{w.approvers, visible.Line(q.Approvers.In(language))})
	}
	return d
}

// size is about how many bytes the value has.
func (v *Value) size() int {
	n := len(v.Name) + len(v.Text)
	for _, row := range append(v.Rows, v.Columns, v.Diff) {
		for _, cell := range row {
			n += len(cell)
		}
	}
	return n
}

// maxClient bounds the name of a client, in characters.
const maxClient = 60

// asker names the user, the client and the frontend.
func (q *Question) asker(w *words) string {
	where, known := w.frontends[q.Caller.Frontend]
	if !known {
		where = q.Caller.Frontend
	}
	if q.Client != "" {
		where = clip.Runes(q.Client, maxClient) + w.comma + where
	}
	return fmt.Sprintf(w.asker, cmp.Or(q.Caller.User, w.nobody), where)
}

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

// JSON returns the arguments as they are, on several lines and without escape sequences, which could hide words.
// Arguments that need more than maxIndentation are on one line.
func (q *Question) JSON() string {
	formatted := jsontext.Value(bytes.Clone(q.Arguments))
	// Arguments that cannot be formatted are shown unchanged.
	_ = formatted.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
		jsontext.WithIndent(indent), jsontext.Multiline(indentation(q.Arguments) <= maxIndentation*len(q.Arguments)))
	return visible.Text(string(formatted))
}

const indent = "  "

// indentation returns at least as many bytes as the indentation of all lines has.
func indentation(arguments json.RawMessage) (n int) {
	decoder := jsontext.NewDecoder(bytes.NewReader(arguments), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := decoder.ReadToken(); err != nil {
			return n
		}
		n += len(indent) * decoder.StackDepth()
	}
}
