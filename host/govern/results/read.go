package results

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

//go:embed manifest.yaml
var manifestYAML []byte

// Tool is the name of the tool that reads kept results.
const Tool = "read_result"

// sourceName is the name of the source in the catalog. A plugin cannot have it.
const sourceName = "hako.results"

// Offer adds the tool and the resource template to a catalog.
func (k *Keeper) Offer(c *catalog.Catalog) error {
	m, err := manifest.Parse(manifestYAML)
	if err != nil {
		return err
	}
	return c.Put(catalog.Source{Name: sourceName, Own: true, Backend: k}, m)
}

var _ catalog.Backend = (*Keeper)(nil)

// Call implements catalog.Backend.
func (k *Keeper) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	request := invocation.Request
	if request.Method == abi.ReadResource {
		id := request.Variables["id"]
		found, err := k.find(ctx, invocation.Owner, id)
		if err != nil {
			return nil, err
		}
		text, err := found.whole(ctx)
		if err != nil {
			return nil, k.explain(err, id)
		}
		return &abi.Response{Contents: []abi.ResourceContents{{URI: request.URI, MIMEType: found.mimeType,
			Text: text}}}, nil
	}
	var q query
	if err := json.Unmarshal(request.Arguments, &q); err != nil { // they match the schema
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: err.Error()}
	}
	id := strings.TrimPrefix(q.ID, uriOf(""))
	found, err := k.find(ctx, invocation.Owner, id)
	if err != nil {
		return nil, err
	}
	room := pageSize(invocation.MaxResult, q.Limit != 0)
	w, err := q.load(ctx, found, room)
	if err != nil {
		return nil, k.explain(err, id)
	}
	p, err := q.read(w, found.mimeType, room)
	if err != nil {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: err.Error()}
	}
	response := &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: p.text}}}
	if p.note != "" && invocation.MaxResult > 0 {
		response.Content = append(response.Content, abi.Content{Type: abi.Text, Text: "(" + p.note + ")"})
	}
	return response, nil
}

// maxPage bounds a page whose size the caller does not choose, noteRoom its note, both in bytes.
const (
	maxPage  = 16 << 10
	noteRoom = 512
)

// pageSize bounds the text of a page for a caller that takes at most limit bytes of a result; zero is no limit.
func pageSize(limit int, chosen bool) int {
	switch {
	case limit <= 0:
		return 0
	case chosen:
		return max(limit-noteRoom, limit/2, 1)
	}
	return max(min(maxPage, limit-noteRoom), limit/2, 1)
}

// query has the arguments of read_result.
type query struct {
	ID      string  `json:"id"`
	Pointer *string `json:"pointer"`
	Offset  int     `json:"offset"`
	Limit   int     `json:"limit"`
	Unit    string  `json:"unit"`
}

// page is a part of a document, and a note about the rest.
type page struct{ text, note string }

// load loads what read needs: all of a document in JSON or of one that fits, otherwise the parts with the page.
func (q *query) load(ctx context.Context, s *stored, room int) (*window, error) {
	whole := q.Offset == 0 && q.Limit == 0 && (room == 0 || s.total().Bytes <= room)
	switch {
	case whole, q.hasPointer(), s.mimeType == mimeJSON && q.Unit != "characters", q.Unit == "items":
		text, err := s.whole(ctx)
		return windowOf(text), err
	case q.Unit == "characters":
		return s.window(ctx, q, room, func(p part) int { return p.Characters })
	}
	return s.window(ctx, q, room, func(p part) int { return p.Lines })
}

func (q *query) hasPointer() bool { return q.Pointer != nil && *q.Pointer != "" }

// read returns the part of a document that is asked for, at most room bytes of it if room is not zero.
func (q *query) read(w *window, mimeType string, room int) (*page, error) {
	inJSON := mimeType == mimeJSON
	if q.hasPointer() {
		if !inJSON {
			return nil, fmt.Errorf("the result is %s, and a pointer is for JSON: leave it out", mimeType)
		}
		value, err := pointTo(jsontext.Value(w.text), *q.Pointer)
		if err != nil {
			return nil, err
		}
		selected := string(value)
		if value.Kind() == '"' {
			inJSON = false
			if err := json.Unmarshal(value, &selected); err != nil {
				return nil, err
			}
		}
		w = windowOf(selected)
	}
	fits := room == 0 || w.total.Bytes <= room
	kind := jsontext.Value(w.text).Kind()
	switch {
	case q.Offset == 0 && q.Limit == 0 && fits:
		return &page{text: w.text}, nil
	case q.Unit == "characters", q.Unit == "" && inJSON && kind != '[' && kind != '{':
		return q.characters(w, room), nil
	case q.Unit == "lines", q.Unit == "" && !inJSON:
		return q.lines(w, room), nil
	case !inJSON || kind != '[' && (kind != '{' || q.Unit == "items"):
		return nil, fmt.Errorf(
			"this part of the result is not a list: leave \"unit\" out, or point to a list with \"pointer\"")
	case kind == '{':
		p := q.outline(w.text, room)
		p.note = fmt.Sprintf("an object of %d bytes, whose parts these are, for \"pointer\": %s", len(w.text), p.note)
		return p, nil
	}
	return q.items(w.text, room), nil
}

// pointTo returns the part of a JSON value at a JSON Pointer (RFC 6901). It reads the value once, however deep the part
// is.
func pointTo(value jsontext.Value, pointer string) (jsontext.Value, error) {
	if pointer[0] != '/' {
		return nil, fmt.Errorf("the pointer %q is not a JSON Pointer: it begins with /", pointer)
	}
	decoder, at := newDecoder(value), ""
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if err := step(decoder, token); err != nil {
			return nil, fmt.Errorf("there is nothing at %q of the result: %s %w", pointer, place(at), err)
		}
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
	}
	return nextOf(value, decoder), nil
}

func place(pointer string) string {
	if pointer == "" {
		return "the result"
	}
	return pointer
}

// maxNames bounds the member names in an error.
const maxNames = 10

// step moves the decoder from a value to its member or item that a token of a pointer names.
func step(decoder *jsontext.Decoder, token string) error {
	switch decoder.PeekKind() {
	case '[':
		_, _ = decoder.ReadToken() // the bracket
		n := 0
		for ; hasNext(decoder); n++ {
			if strconv.Itoa(n) == token { // no other spelling is an index
				return nil
			}
			if err := decoder.SkipValue(); err != nil {
				return err
			}
		}
		return fmt.Errorf("is a list of %d items", n)
	case '{':
		_, _ = decoder.ReadToken()
		var names []string
		for hasNext(decoder) {
			read, err := decoder.ReadToken()
			if err != nil {
				return err
			}
			name := read.String()
			if name == token {
				return nil
			}
			if len(names) < maxNames {
				names = append(names, shownID(name))
			}
			if err := decoder.SkipValue(); err != nil {
				return err
			}
		}
		return fmt.Errorf("is an object with %s", strings.Join(names, ", "))
	}
	return fmt.Errorf("is neither an object nor a list")
}

func unquoted(name jsontext.Value) (text string) {
	_ = json.Unmarshal(name, &text) // cannot fail: it was decoded as a string
	return text
}

// items returns whole items of a list.
func (q *query) items(list string, room int) *page {
	large := 0 // the size of the first item of the page, if it does not fit
	part := composite{kind: '['}
	to, all := q.Offset, 0
	for i, item := range membersOf(jsontext.Value(list)) {
		all++
		if i != to || q.Limit > 0 && to-q.Offset == q.Limit {
			continue
		}
		if room > 0 && part.size()+len(item.value)+1 > room {
			if to == q.Offset {
				large = len(item.value)
			}
			continue
		}
		part.add(item)
		to++
	}
	if large > 0 {
		return &page{text: "[]",
			note: fmt.Sprintf("item %d has %d bytes, which is more than a page: read it with \"pointer\": %q",
				to, large, q.below(strconv.Itoa(to)))}
	}
	return &page{string(part.close()), rest("items", min(q.Offset, all), min(to, all), all)}
}

// below returns the pointer to a member of what the query points to.
func (q *query) below(token string) string {
	pointer := ""
	if q.Pointer != nil {
		pointer = *q.Pointer
	}
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// rest returns the line about the part that a page has and where the next one begins.
func rest(unit string, from, to, all int) string {
	switch {
	case from >= all:
		return fmt.Sprintf("there are only %d %s", all, unit)
	case to >= all:
		return fmt.Sprintf("%s %d to %d of %d: the last ones", unit, from, to-1, all)
	}
	return fmt.Sprintf("%s %d to %d of %d: the next page has \"offset\": %d", unit, from, to-1, all, to)
}

// outline describes the members of an object that is too large for a page.
func (q *query) outline(object string, room int) *page {
	var b strings.Builder
	to, all := q.Offset, 0
	for i, m := range membersOf(jsontext.Value(object)) {
		all++
		if i != to || q.Limit > 0 && to-q.Offset == q.Limit {
			continue
		}
		line := fmt.Sprintf("%s: %s\n", q.below(unquoted(m.name)), shape(m.value))
		if room > 0 && b.Len()+len(line) > room {
			continue
		}
		b.WriteString(line)
		to++
	}
	return &page{b.String(), rest("members", min(q.Offset, all), min(to, all), all)}
}

// shape describes a JSON value in a few words.
func shape(value jsontext.Value) string {
	const short = 60
	switch kind := value.Kind(); {
	case kind == '[':
		return fmt.Sprintf("list of %d items, %d bytes", count(value), len(value))
	case kind == '{':
		return fmt.Sprintf("object with %d members, %d bytes", count(value), len(value))
	case len(value) <= short:
		return string(value)
	}
	return fmt.Sprintf("text, %d bytes", len(value))
}

// lines returns whole lines of a text. A line that is longer than a page is not whole.
func (q *query) lines(w *window, room int) *page {
	text, all := w.text, w.total.Lines
	from := min(q.Offset, all)
	begin := 0
	for range from - w.before.Lines {
		if i := strings.IndexByte(text[begin:], '\n'); i >= 0 {
			begin += i + 1
		}
	}
	end, to := begin, from
	for to < all && (q.Limit == 0 || to-from < q.Limit) {
		next := len(text)
		if i := strings.IndexByte(text[end:], '\n'); i >= 0 {
			next = end + i + 1
		}
		if room > 0 && next-begin > room {
			break
		}
		end, to = next, to+1
	}
	if to == from && from < all {
		start := firstLines(text[begin:], room)
		at := w.before.Characters + utf8.RuneCountInString(text[:begin])
		return &page{start, fmt.Sprintf("line %d of %d is longer than a page: its rest has \"unit\": \"characters\", "+
			"\"offset\": %d", from, all, at+utf8.RuneCountInString(start))}
	}
	return &page{text[begin:end], rest("lines", from, to, all)}
}

// characters returns characters of a text.
func (q *query) characters(w *window, room int) *page {
	text, all := w.text, w.total.Characters
	from := min(q.Offset, all)
	begin := afterRunes(text, from-w.before.Characters)
	end := len(text)
	if q.Limit > 0 {
		end = begin + afterRunes(text[begin:], q.Limit)
	}
	if room > 0 && end-begin > room {
		end = begin + room
		for !utf8.RuneStart(text[end]) {
			end--
		}
	}
	return &page{text[begin:end], rest("characters", from, from+utf8.RuneCountInString(text[begin:end]), all)}
}

// afterRunes returns the index after the first n characters of a text.
func afterRunes(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
