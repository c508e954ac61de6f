package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
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

// maxDepth bounds the depth of the list that is truncated. Each level is read once more for it.
const maxDepth = 8

// shrink truncates the longest list in value, up to maxDepth, so that value has at most limit bytes. It reports false
// if there is no list or no item would remain.
func (p *pager) shrink(name string, value jsontext.Value, limit, depth int) (jsontext.Value, bool) {
	if depth > maxDepth || limit <= 0 {
		return nil, false
	}
	if value.Kind() == '[' {
		return p.cut(name, value, limit)
	}
	at, longest := -1, member{}
	for i, m := range membersOf(value) {
		if kind := m.value.Kind(); (kind == '[' || kind == '{') && len(m.value) > len(longest.value) {
			at, longest = i, m
		}
	}
	if at < 0 {
		return nil, false
	}
	inner, ok := p.shrink(unquoted(longest.name), longest.value, limit-(len(value)-len(longest.value)), depth+1)
	if !ok {
		return nil, false
	}
	shrunk := composite{kind: '{'}
	for i, m := range membersOf(value) {
		if i == at {
			m.value = inner
		}
		if p.fixCursor(&m) {
			shrunk.add(m)
		}
	}
	return shrunk.close(), true
}

// cut returns as many items of a list as fit.
func (p *pager) cut(name string, list jsontext.Value, limit int) (jsontext.Value, bool) {
	p.list, p.shown, p.all = name, 0, 0
	cut := composite{kind: '['}
	for i, item := range membersOf(list) {
		p.all++
		if p.shown == i && cut.size()+len(item.value)+1 <= limit {
			cut.add(item)
			p.shown++
		}
	}
	return cut.close(), p.shown > 0
}

// fixCursor makes next_offset point to the first item cut off. It reports false for a cursor, which would skip the
// items cut off.
func (p *pager) fixCursor(m *member) bool {
	name := strings.Trim(string(m.name), `"`)
	switch {
	case slices.Contains(cursorNames, name):
		p.cursor = name
		return false
	case p.offset >= 0 && name == "next_offset":
		m.value = jsontext.Value(fmt.Sprint(p.offset + p.shown))
	}
	return true
}

// membersOf yields the members of an object or the items of a list with their positions, as parts of value, which must
// be valid JSON. It keeps none of them: a list of a few megabytes can have millions.
func membersOf(value jsontext.Value) iter.Seq2[int, member] {
	return func(yield func(int, member) bool) {
		decoder := newDecoder(value)
		_, _ = decoder.ReadToken() // the bracket
		for i := 0; hasNext(decoder); i++ {
			var m member
			if value.Kind() == '{' {
				m.name = nextOf(value, decoder)
			}
			if m.value = nextOf(value, decoder); !yield(i, m) {
				return
			}
		}
	}
}

// nextOf returns the next value of a decoder of whole, as a part of that.
func nextOf(whole jsontext.Value, decoder *jsontext.Decoder) jsontext.Value {
	read, _ := decoder.ReadValue() // it is valid
	end := int(decoder.InputOffset())
	return whole[end-len(read) : end : end]
}

// count returns the number of members or items of value.
func count(value jsontext.Value) (n int) {
	for range membersOf(value) {
		n++
	}
	return n
}

func newDecoder(value jsontext.Value) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
}

// hasNext reports whether the object or list that the decoder is in has another member.
func hasNext(decoder *jsontext.Decoder) bool {
	kind := decoder.PeekKind()
	return kind != '}' && kind != ']' && kind != 0
}

// composite is an object or a list that is written.
type composite struct {
	kind jsontext.Kind // '{' or '['
	text []byte
}

// size is that of the closed text, in bytes.
func (c *composite) size() int { return max(len(c.text), 1) + 1 }

func (c *composite) add(m member) {
	separator := byte(',')
	if len(c.text) == 0 {
		separator = byte(c.kind)
	}
	c.text = append(c.text, separator)
	if m.name != nil {
		c.text = append(append(c.text, m.name...), ':')
	}
	c.text = append(c.text, m.value...)
}

func (c *composite) close() jsontext.Value {
	if len(c.text) == 0 {
		c.text = append(c.text, byte(c.kind))
	}
	return append(c.text, byte(c.kind)+2) // in ASCII, the closing bracket is two after the opening one
}
