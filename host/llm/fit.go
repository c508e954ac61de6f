package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Fit returns a tool's result as text of about limit bytes at most. A longer one is cut between the items of its longest list, or between its
// lines, and begins with a note that says so and how to get the rest: by the schema and the arguments of the call, either of which may be
// nil. Text that has neither is cut anywhere.
func Fit(text string, limit int, schema, arguments json.RawMessage) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text
	}
	if fitted, ok := fitJSON(text, limit, schema, arguments); ok {
		return fitted
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if line := strings.LastIndexByte(text[:end], '\n'); line >= end/2 {
		end = line
	}
	return text[:end] + fmt.Sprintf("\n(cut off: these are the first %d of %d bytes. Ask for less, or for a part)", end, len(text))
}

// maxNote is room for the note of a result that is cut between items.
const maxNote = 320

func fitJSON(text string, limit int, schema, arguments json.RawMessage) (string, bool) {
	value := jsontext.Value(text)
	if kind := value.Kind(); kind != '{' && kind != '[' || !value.IsValid(jsontext.AllowDuplicateNames(true)) || limit <= maxNote {
		return "", false
	}
	p := pager{offset: -1}
	p.read(schema, arguments)
	cut, ok := p.shrink("the list", value, limit-maxNote, 0)
	if !ok {
		return "", false
	}
	return p.note() + "\n" + string(cut), true
}

// pager cuts the longest list of a JSON value, and says how to go on after what is left of it.
type pager struct {
	limit, cursor string // the names of the argument that limits the list, and of the member that leads to the rest of it
	offset        int    // the call's; -1 if the tool takes none
	list          string
	shown, all    int
}

// Names that tools have for the most items of a list, and for what leads to the rest of it.
var limitNames, cursorNames = []string{"limit", "max_rows"}, []string{"next_cursor", "next_range"}

func (p *pager) read(schema, arguments json.RawMessage) {
	var takes struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var given struct {
		Offset int `json:"offset"`
	}
	_ = json.Unmarshal(schema, &takes)    // of no known form: then there is nothing to say
	_ = json.Unmarshal(arguments, &given) // likewise
	for _, name := range limitNames {
		if _, ok := takes.Properties[name]; ok {
			p.limit = name
		}
	}
	if _, ok := takes.Properties["offset"]; ok {
		p.offset = given.Offset
	}
}

func (p *pager) note() string {
	name := p.list[:min(len(p.list), 64)]
	rest := "Ask for less, or for a part"
	switch {
	case p.offset >= 0:
		rest = fmt.Sprintf(`For the rest call again with "offset": %d`, p.offset+p.shown)
	case p.limit != "" && p.cursor != "":
		rest = fmt.Sprintf("Call again with %q: %d, and then as its %s says", p.limit, p.shown, p.cursor)
	case p.limit != "":
		rest = fmt.Sprintf("To see the others narrow what you ask for: %q: %d fits", p.limit, p.shown)
	}
	return fmt.Sprintf("(too long: %q has the first %d of %d items here. %s)", strings.ToValidUTF8(name, ""), p.shown, p.all, rest)
}

// member is one of an object; its name is as in the JSON.
type member struct{ name, value jsontext.Value }

// shrink returns value with its longest list, at any depth, cut to limit bytes. It reports false if there is no such list, or nothing would be
// left of it.
func (p *pager) shrink(name string, value jsontext.Value, limit, depth int) (jsontext.Value, bool) {
	const maxDepth = 16
	if depth > maxDepth || limit <= 0 {
		return nil, false
	}
	members := parts(value)
	if value.Kind() == '[' {
		return p.cut(name, members, limit)
	}
	longest := -1
	for i, m := range members {
		if kind := m.value.Kind(); (kind == '[' || kind == '{') && (longest < 0 || len(m.value) > len(members[longest].value)) {
			longest = i
		}
	}
	if longest < 0 {
		return nil, false
	}
	rest := len(value) - len(members[longest].value)
	var inner string
	_ = json.Unmarshal(members[longest].name, &inner) // it was read as a string
	cut, ok := p.shrink(inner, members[longest].value, limit-rest, depth+1)
	if !ok {
		return nil, false
	}
	members[longest].value = cut
	return joined(p.leadOn(members)), true
}

// cut keeps as many items of a list as fit.
func (p *pager) cut(name string, items []member, limit int) (jsontext.Value, bool) {
	size := len("[]")
	p.list, p.shown, p.all = name, 0, len(items)
	for _, item := range items {
		if size += len(item.value) + 1; size > limit {
			break
		}
		p.shown++
	}
	return joined(items[:p.shown]), p.shown > 0
}

// leadOn has the members beside a list that was cut lead to the first item that is missing, or nowhere: a cursor would skip some.
func (p *pager) leadOn(members []member) []member {
	var kept []member
	for _, m := range members {
		name := strings.Trim(string(m.name), `"`)
		switch {
		case slices.Contains(cursorNames, name):
			p.cursor = name
			continue
		case p.offset >= 0 && name == "next_offset":
			m.value = jsontext.Value(fmt.Sprint(p.offset + p.shown))
		}
		kept = append(kept, m)
	}
	return kept
}

// parts are the members of an object, or the items of a list without names. value is valid JSON.
func parts(value jsontext.Value) (list []member) {
	decoder := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	named := value.Kind() == '{'
	_, _ = decoder.ReadToken() // the bracket
	for kind := decoder.PeekKind(); kind != '}' && kind != ']' && kind != 0; kind = decoder.PeekKind() {
		var m member
		if named {
			name, _ := decoder.ReadValue()
			m.name = name.Clone()
		}
		v, err := decoder.ReadValue()
		if err != nil {
			return list
		}
		m.value = v.Clone()
		list = append(list, m)
	}
	return list
}

// joined is the reverse of parts; of nothing it makes a list.
func joined(list []member) jsontext.Value {
	brackets := "[]"
	var b bytes.Buffer
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if m.name != nil {
			brackets = "{}"
			b.Write(m.name)
			b.WriteByte(':')
		}
		b.Write(m.value)
	}
	return jsontext.Value(brackets[:1] + b.String() + brackets[1:])
}
