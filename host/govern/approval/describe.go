package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

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
