package secretscan

import (
	"bytes"
	"encoding/json"
	"strings"

	jsonopts "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxKeyed is the longest string that is looked at together with the name that it is under, in bytes: what names its secrets is short.
const maxKeyed = 4 << 10

// JSON looks for secrets in the strings of a JSON document and returns it with those masked that are to be; all else stays as it is. found is
// each rule once. A text that is no JSON is looked at as text, and masked as a JSON string.
func (s *Scanner) JSON(place Place, document json.RawMessage) (masked json.RawMessage, found []Finding) {
	return s.json(place, document, s.action)
}

// MaskedJSON is the document with every secret in it masked, for records that outlive the call and people who are asked about it.
func (s *Scanner) MaskedJSON(document json.RawMessage) json.RawMessage {
	masked, _ := s.json(Arguments, document, func(string, Place) Action { return Mask })
	return masked
}

func (s *Scanner) json(place Place, document json.RawMessage, act func(string, Place) Action) (masked json.RawMessage, found []Finding) {
	if s.places[place] == Ignore || len(document) == 0 {
		return document, nil
	}
	w := &walker{scanner: s, place: place, act: act, in: document, tokens: jsontext.NewDecoder(bytes.NewReader(document), lenient)}
	if !w.walk() {
		found, edits := s.scan(place, string(document), 0, act)
		if len(edits) == 0 {
			return document, found
		}
		quoted, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(mask(string(document), edits), "\uFFFD"))
		return json.RawMessage(quoted), found
	}
	return w.result(), w.found
}

// lenient takes what encoding/json takes. Whether that is good enough for a tool is not decided here.
var lenient = jsonopts.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// walker goes through the strings of a document.
type walker struct {
	scanner *Scanner
	place   Place
	act     func(string, Place) Action
	in      []byte
	tokens  *jsontext.Decoder
	out     []byte
	copied  int // of in
	found   []Finding
}

// walk reports whether the document is JSON.
func (w *walker) walk() bool {
	name := ""
	for depth := 0; ; {
		kind := w.tokens.PeekKind()
		if kind != '"' {
			token, err := w.tokens.ReadToken()
			if err != nil {
				return false
			}
			switch token.Kind() {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
		} else if text, ok := w.text(); !ok {
			return false
		} else if within, n := w.tokens.StackIndex(depth); within == '{' && n%2 == 1 {
			name = text // of the value that follows
			w.look("", text)
		} else {
			w.look(name, text)
		}
		if depth == 0 {
			return len(bytes.TrimSpace(w.in[w.tokens.InputOffset():])) == 0
		}
	}
}

// text reads a string.
func (w *walker) text() (string, bool) {
	token, err := w.tokens.ReadToken()
	if err != nil {
		return "", false
	}
	return token.String(), true
}

// look looks at the string that was read last, which is under name.
func (w *walker) look(name, text string) {
	context := ""
	if len(text)+len(name) <= maxKeyed {
		context = name + `": "`
	}
	found, edits := w.scanner.scan(w.place, context+text+`"`, len(context), w.act)
	w.found = union(w.found, found)
	if len(edits) == 0 {
		return
	}
	for i := range edits {
		edits[i].start, edits[i].end = edits[i].start-len(context), min(len(text), edits[i].end-len(context))
	}
	end := int(w.tokens.InputOffset())
	begin := end - w.width(end)
	w.out = append(w.out, w.in[w.copied:begin]...)
	w.out, _ = jsontext.AppendQuote(w.out, mask(text, edits)) // which is UTF-8: the decoder has seen to that
	w.copied = end
}

// width is how long the string is that ends at end, with its quotes.
func (w *walker) width(end int) int {
	for begin := end - 2; ; begin-- {
		if w.in[begin] != '"' {
			continue
		}
		slashes := 0
		for begin-1-slashes >= 0 && w.in[begin-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end - begin
		}
	}
}

func (w *walker) result() json.RawMessage {
	if w.copied == 0 {
		return w.in
	}
	return append(w.out, w.in[w.copied:]...)
}
