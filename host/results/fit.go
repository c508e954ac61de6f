package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Fit truncates the text of a tool result to about limit bytes. JSON is cut between the items of its longest list,
// other text between lines where possible. A note says what is missing and how to request it, derived from the tool's
// input schema and the call's arguments; either may be nil.
func Fit(text string, limit int, schema, arguments json.RawMessage) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text
	}
	if isJSON(text) && limit > maxNote {
		p := pager{offset: -1}
		p.read(schema, arguments)
		if fitted, ok := p.shrink("the list", jsontext.Value(text), limit-maxNote, 0); ok {
			return p.note() + "\n" + string(fitted)
		}
	}
	start := firstLines(text, limit)
	return start + fmt.Sprintf("\n(cut off: these are the first %d of %d bytes. Ask for less, or for a part)",
		len(start), len(text))
}

// firstLines returns the beginning of a text, at most limit bytes of it: whole lines, unless they are less than half.
func firstLines(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if line := strings.LastIndexByte(text[:end], '\n'); line >= end/2 {
		end = line
	}
	return text[:end]
}

// isJSON reports whether a text is an object or a list in JSON.
func isJSON(text string) bool {
	value := jsontext.Value(strings.TrimLeft(text[:min(len(text), 64)], " \t\r\n"))
	if kind := value.Kind(); kind != '{' && kind != '[' {
		return false
	}
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

// maxNote is the space reserved for the note of a truncated list, in bytes.
const maxNote = 320

// pager truncates the longest list of a JSON value and describes how to request the rest.
type pager struct {
	limit, cursor string // names of the argument that limits the list and of the result's cursor
	offset        int    // the call's; -1 if the tool has no offset
	list          string
	shown, all    int
}

// Common names of limit arguments and of cursors in results.
var limitNames, cursorNames = []string{"limit", "max_rows"}, []string{"next_cursor", "next_range"}

func (p *pager) read(schema, arguments json.RawMessage) {
	var takes struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var given struct {
		Offset int `json:"offset"`
	}
	_ = json.Unmarshal(schema, &takes) // without a usable schema the note stays general
	_ = json.Unmarshal(arguments, &given)
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
	rest := "Ask for less, or for a part"
	switch {
	case p.offset >= 0:
		rest = fmt.Sprintf(`For the rest call again with "offset": %d`, p.offset+p.shown)
	case p.limit != "" && p.cursor != "":
		rest = fmt.Sprintf("Call again with %q: %d, and then as its %s says", p.limit, p.shown, p.cursor)
	case p.limit != "":
		rest = fmt.Sprintf("To see the others narrow what you ask for: %q: %d fits", p.limit, p.shown)
	}
	return fmt.Sprintf("(too long: %q has the first %d of %d items here. %s)", p.listName(),
		p.shown, p.all, rest)
}

// listName is the name of the truncated list, bounded for a note.
func (p *pager) listName() string { return strings.ToValidUTF8(p.list[:min(len(p.list), 64)], "") }

// member is a member of an object, with its name as quoted in the JSON, or an item of a list.
type member struct{ name, value jsontext.Value }

// shrink truncates the longest list in value, at any depth, so that value has at most limit bytes. It reports false if
// there is no list or no item would remain.
func (p *pager) shrink(name string, value jsontext.Value, limit, depth int) (jsontext.Value, bool) {
	const maxDepth = 16
	if depth > maxDepth || limit <= 0 {
		return nil, false
	}
	members := decode(value)
	if value.Kind() == '[' {
		return p.cut(name, members, limit)
	}
	longest := -1
	for i, m := range members {
		if kind := m.value.Kind(); (kind == '[' || kind == '{') &&
			(longest < 0 || len(m.value) > len(members[longest].value)) {
			longest = i
		}
	}
	if longest < 0 {
		return nil, false
	}
	rest := len(value) - len(members[longest].value)
	var inner string
	_ = json.Unmarshal(members[longest].name, &inner) // cannot fail: it was decoded as a string
	cut, ok := p.shrink(inner, members[longest].value, limit-rest, depth+1)
	if !ok {
		return nil, false
	}
	members[longest].value = cut
	return encode(p.fixCursors(members)), true
}

// cut returns as many items of a list as fit.
func (p *pager) cut(name string, items []member, limit int) (jsontext.Value, bool) {
	size := len("[]")
	p.list, p.shown, p.all = name, 0, len(items)
	for _, item := range items {
		if size += len(item.value) + 1; size > limit {
			break
		}
		p.shown++
	}
	return encode(items[:p.shown]), p.shown > 0
}

// fixCursors makes next_offset point to the first item cut off, and removes cursors, which would skip the items cut
// off.
func (p *pager) fixCursors(members []member) []member {
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

// decode returns the members of an object or the items of a list, as parts of value, which must be valid JSON.
func decode(value jsontext.Value) (list []member) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
	part := func() (jsontext.Value, bool) {
		read, err := decoder.ReadValue()
		end := int(decoder.InputOffset())
		return value[end-len(read) : end : end], err == nil
	}
	named := value.Kind() == '{'
	_, _ = decoder.ReadToken() // the bracket
	for kind := decoder.PeekKind(); kind != '}' && kind != ']' && kind != 0; kind = decoder.PeekKind() {
		var m member
		ok := true
		if named {
			m.name, _ = part()
		}
		if m.value, ok = part(); !ok {
			return list
		}
		list = append(list, m)
	}
	return list
}

// encode reverses decode. No members make an empty list.
func encode(list []member) jsontext.Value {
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
