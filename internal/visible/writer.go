package visible

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer escapes a stream like Escape, whatever the boundaries of writes. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	out     io.Writer
	walker  walker
	partial []byte // the start of an incomplete character
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes data except for an incomplete character at its end, which is written with its rest.
func (w *Writer) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(w.partial) + string(data)
	whole := len(text) - len(incomplete(text))
	w.partial = append(w.partial[:0], text[whole:]...)
	if err := w.write(text[:whole]); err != nil {
		return 0, err
	}
	return len(data), nil
}

func (w *Writer) write(text string) error {
	if plain(text) {
		if text != "" {
			w.walker = walker{last: rune(text[len(text)-1])}
		}
	} else {
		var b strings.Builder
		w.walker.replace(&b, text, "\n\t", true, escape)
		text = b.String()
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// incomplete returns the incomplete character at the end of text.
func incomplete(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		end := text[len(text)-n:]
		if utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return ""
			}
			return end
		}
	}
	return ""
}

// Redirect makes to the target of later writes, and returns the former target.
func (w *Writer) Redirect(to io.Writer) (former io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	former, w.out = w.out, to
	return former
}

// Target returns the target of writes.
func (w *Writer) Target() io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out
}

// Styled writes a single-line text between trusted control sequences.
func (w *Writer) Styled(before, text, after string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.walker, w.partial = walker{}, nil
	_, err := io.WriteString(w.out, before+Line(text)+after)
	return err
}
