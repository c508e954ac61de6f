package secretscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unsafe"

	"github.com/hako-run/hako/internal/bytepool"
	"github.com/hako-run/hako/internal/jsonread"
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
	buffer := bytepool.Get()
	w := &walker{scanner: s, buffer: *buffer, place: place, act: act, in: document,
		tokens: jsonread.Reader{Data: document, Lenient: true}}
	valid := w.walk()
	*buffer = w.buffer
	bytepool.Put(buffer) // findings and masked texts are copies
	if !valid {
		found, edits := s.scan(place, string(document), 0, act)
		if len(edits) == 0 {
			return document, found
		}
		return jsonstring.AppendQuote(nil, mask(string(document), edits)), found
	}
	return w.result(), w.found
}

// walker scans the strings of a document.
type walker struct {
	scanner *Scanner
	place   Place
	act     func(string, Place) Action
	in      []byte
	tokens  jsonread.Reader
	out     []byte
	copied  int // of in
	found   []Finding
	// buffer holds the text of the last string, if that differs from its form in the document.
	buffer []byte
}

// walk scans the document. It reports false if the document is not JSON.
func (w *walker) walk() bool {
	name := ""
	for {
		token, err := w.tokens.Next()
		switch {
		case err != nil:
			return errors.Is(err, io.EOF)
		case token.Name:
			w.scanString("", token)
			name = string(token.Text()) // of the value that follows
		case token.Kind == '"':
			w.scanString(name, token)
		}
	}
}

// scanString scans a string, the value of the member name.
func (w *walker) scanString(name string, token jsonread.Token) {
	content := token.Content()
	var text []byte
	context := 0 // length of the text before the string
	if len(content)+len(name) > maxKeyed && bytes.IndexByte(content, '\\') < 0 {
		text = token.Raw[1:] // in place, with its quote
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
	begin := w.tokens.Offset()
	w.out = append(w.out, w.in[w.copied:begin]...)
	w.out = jsonstring.AppendQuote(w.out, mask(string(text), edits))
	w.copied = begin + len(token.Raw)
}

func (w *walker) result() json.RawMessage {
	if w.copied == 0 {
		return w.in
	}
	return append(w.out, w.in[w.copied:]...)
}
