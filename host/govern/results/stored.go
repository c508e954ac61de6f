package results

import (
	"context"
	"strings"
	"unicode/utf8"
)

// stored is a kept document. It is in parts, so that reading a few lines of a large text does not load all of it.
type stored struct {
	mimeType string
	parts    []part
	// load returns the text of the parts from, to (exclusive).
	load func(ctx context.Context, from, to int) (string, error)
}

// part measures a part of a text: bytes, the lines that end in it, and characters. The last line ends with the text.
type part struct {
	Bytes      int `json:"bytes"`
	Lines      int `json:"lines"`
	Characters int `json:"characters"`
}

func measure(text string, last bool) part {
	p := part{len(text), strings.Count(text, "\n"), utf8.RuneCountInString(text)}
	if last && !strings.HasSuffix(text, "\n") {
		p.Lines++
	}
	return p
}

// newStored returns a document of one part.
func newStored(d *document) *stored {
	return &stored{d.mimeType, []part{measure(d.text, true)},
		func(context.Context, int, int) (string, error) { return d.text, nil }}
}

// total measures the whole text.
func (s *stored) total() (sum part) {
	for _, p := range s.parts {
		sum = part{sum.Bytes + p.Bytes, sum.Lines + p.Lines, sum.Characters + p.Characters}
	}
	return sum
}

func (s *stored) whole(ctx context.Context) (string, error) { return s.load(ctx, 0, len(s.parts)) }

// window is a text, or some consecutive parts of one: what is before them, and the whole.
type window struct {
	text          string
	before, total part
}

func windowOf(text string) *window { return &window{text: text, total: measure(text, true)} }

// window returns the parts that a page can need that begins at q.Offset and has at most q.Limit lines or characters and
// at most room bytes, where zero means no limit. count returns what q counts.
func (s *stored) window(ctx context.Context, q *query, room int, count func(part) int) (*window, error) {
	w := &window{total: s.total()}
	from := 0
	for ; from < len(s.parts)-1 && count(w.before)+count(s.parts[from]) < q.Offset; from++ {
		p := s.parts[from]
		w.before = part{w.before.Bytes + p.Bytes, w.before.Lines + p.Lines, w.before.Characters + p.Characters}
	}
	// The page begins in the part from, maybe at its end.
	to, counted, bytes := from+1, count(w.before)+count(s.parts[from]), 0
	for to < len(s.parts) && (q.Limit == 0 || counted-q.Offset < q.Limit) && (room == 0 || bytes <= room) {
		counted, bytes = counted+count(s.parts[to]), bytes+s.parts[to].Bytes
		to++
	}
	var err error
	w.text, err = s.load(ctx, from, to)
	return w, err
}
