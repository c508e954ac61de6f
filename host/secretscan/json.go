package secretscan

import (
	"bytes"
	"encoding/json"
	"unsafe"

	jsonopts "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/jsonstring"
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
		tokens: jsontext.NewDecoder(bytes.NewBuffer(document), lenient)} // a buffer is read in place
	if !w.walk() {
		found, edits := s.scan(place, string(document), 0, act)
		if len(edits) == 0 {
			return document, found
		}
		return jsonstring.AppendQuote(nil, mask(string(document), edits)), found
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
	// buffer holds the text of the last string, if that differs from its form in the document.
	buffer []byte
}

// walk scans the document. It reports false if the document is not JSON.
func (w *walker) walk() bool {
	name := ""
	for depth := 0; ; {
		switch w.tokens.PeekKind() {
		case '"':
			content, ok := w.content()
			if !ok {
				return false
			}
			if within, n := w.tokens.StackIndex(depth); within == '{' && n%2 == 1 {
				w.scanString("", content)
				name = string(jsonstring.AppendUnquote(nil, content)) // of the value that follows
			} else {
				w.scanString(name, content)
			}
		default:
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
		}
		if depth == 0 {
			return len(bytes.TrimSpace(w.in[w.tokens.InputOffset():])) == 0
		}
	}
}

// content reads a string and returns what is between its quotes.
func (w *walker) content() ([]byte, bool) {
	value, err := w.tokens.ReadValue()
	if err != nil {
		return nil, false
	}
	return value[1 : len(value)-1], true
}

// scanString scans the string read last, the value of the member name.
func (w *walker) scanString(name string, content []byte) {
	var text []byte
	context := 0 // length of the text before the string
	if len(content)+len(name) > maxKeyed && bytes.IndexByte(content, '\\') < 0 {
		text = content[:len(content)+1] // in place, with its quote
	} else {
		text = append(append(w.buffer[:0], name...), `": "`...)
		context = len(text)
		text = append(jsonstring.AppendUnquote(text, content), '"')
		w.buffer = text
		if len(text)-context-len(`"`)+len(name) > maxKeyed {
			text, context = text[context:], 0
		}
	}
	found, edits := w.scanner.scan(w.place, unsafe.String(unsafe.SliceData(text), len(text)), context, w.act)
	w.found = union(w.found, found)
	if len(edits) == 0 {
		return
	}
	text = text[context : len(text)-1]
	for i := range edits {
		edits[i].start, edits[i].end = edits[i].start-context, min(len(text), edits[i].end-context)
	}
	end := int(w.tokens.InputOffset())
	begin := end - len(content) - len(`""`)
	w.out = append(w.out, w.in[w.copied:begin]...)
	w.out = jsonstring.AppendQuote(w.out, mask(string(text), edits))
	w.copied = end
}

func (w *walker) result() json.RawMessage {
	if w.copied == 0 {
		return w.in
	}
	return append(w.out, w.in[w.copied:]...)
}
