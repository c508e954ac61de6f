package secretscan

import (
	"bytes"
	"encoding/json"
	"strings"

	jsonopts "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxKeyed bounds the strings that are scanned together with their member name, in bytes.
const maxKeyed = 4 << 10

// JSON scans the strings of a JSON document and returns it with the secrets masked whose action is Mask, otherwise
// unchanged. found lists each matching rule once. Invalid JSON is scanned as text and masked as a JSON string.
func (s *Scanner) JSON(place Place, document json.RawMessage) (masked json.RawMessage, found []Finding) {
	return s.json(place, document, s.action)
}

// MaskedJSON returns the document with all secrets masked, for records that outlive the call and for approval requests.
func (s *Scanner) MaskedJSON(document json.RawMessage) json.RawMessage {
	masked, _ := s.json(Arguments, document, func(string, Place) Action { return Mask })
	return masked
}

func (s *Scanner) json(place Place, document json.RawMessage, act func(string, Place) Action) (masked json.RawMessage,
	found []Finding) {
	if s.places[place] == Ignore || len(document) == 0 {
		return document, nil
	}
	w := &walker{scanner: s, place: place, act: act, in: document,
		tokens: jsontext.NewDecoder(bytes.NewReader(document), lenient)}
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

// lenient accepts what encoding/json accepts.
var lenient = jsonopts.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// walker scans the strings of a document.
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

// walk scans the document. It reports false if the document is not JSON.
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
			w.scanString("", text)
		} else {
			w.scanString(name, text)
		}
		if depth == 0 {
			return len(bytes.TrimSpace(w.in[w.tokens.InputOffset():])) == 0
		}
	}
}

// text returns a string token.
func (w *walker) text() (string, bool) {
	token, err := w.tokens.ReadToken()
	if err != nil {
		return "", false
	}
	return token.String(), true
}

// scanString scans the string read last, the value of the member name.
func (w *walker) scanString(name, text string) {
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

// width returns the length of the quoted string that ends at end.
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
