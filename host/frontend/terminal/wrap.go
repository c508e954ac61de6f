package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// span is text in one style, without control characters. style is a control sequence, or empty.
type span struct{ style, text string }

// row is one line on the terminal.
type row []span

// String returns the row with its control sequences.
func (r row) String() string {
	var b strings.Builder
	for _, s := range r {
		if s.style == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(s.style + s.text + plain)
	}
	return b.String()
}

func (s span) width() int { return ansi.StringWidth(s.text) }

func (r row) width() (n int) {
	for _, s := range r {
		n += s.width()
	}
	return n
}

// cell is a grapheme cluster.
type cell struct {
	style, text string
	width       int
}

func cells(spans []span) (list []cell) {
	for _, s := range spans {
		for text := s.text; text != ""; {
			cluster, width := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
			list = append(list, cell{s.style, cluster, width})
			text = text[len(cluster):]
		}
	}
	return list
}

// Characters that Japanese typesetting keeps away from the start and from the end of a line.
const (
	noStart = "、。，．・：；？！ー」』）】〕〉》］｝ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ々…‥,.!?:;)]}"
	noEnd   = "「『（【〔〈《［｛([{"
)

// breaks reports whether a line may end between two cells.
func breaks(before, after cell) bool {
	if before.text == " " {
		return true
	}
	return (before.width > 1 || after.width > 1) && !strings.Contains(noStart, after.text) &&
		!strings.Contains(noEnd, before.text)
}

// wrap breaks spans into rows of at most width columns: between words, or between characters of Japanese and Chinese.
// A line feed ends a row. A word that is longer than a row is broken.
func wrap(spans []span, width int) (rows []row) {
	width = max(width, 2)
	var line []cell
	flush := func(n int) {
		rows = append(rows, join(line[:n]))
		line = line[n:]
		for len(line) > 0 && line[0].text == " " {
			line = line[1:]
		}
	}
	used := 0
	for _, c := range cells(spans) {
		if c.text == "\n" {
			flush(len(line))
			line, used = nil, 0
			continue
		}
		line = append(line, c)
		if used += c.width; used <= width || c.text == " " {
			continue
		}
		at := len(line) - 1
		for at > 0 && !breaks(line[at-1], line[at]) {
			at--
		}
		if at == 0 {
			at = max(len(line)-1, 1)
		}
		flush(at)
		used = 0
		for _, c := range line {
			used += c.width
		}
	}
	return append(rows, join(line))
}

// join returns cells as a row, without spaces at its end.
func join(line []cell) (r row) {
	for len(line) > 0 && line[len(line)-1].text == " " {
		line = line[:len(line)-1]
	}
	for len(line) > 0 {
		var text strings.Builder
		style := line[0].style
		for len(line) > 0 && line[0].style == style {
			text.WriteString(line[0].text)
			line = line[1:]
		}
		r = append(r, span{style, text.String()})
	}
	return r
}

// hang wraps spans below a first prefix; the following rows begin with rest, which is as wide.
func hang(first, rest span, spans []span, width int) (rows []row) {
	for i, r := range wrap(spans, width-first.width()) {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		rows = append(rows, append(row{prefix}, r...))
	}
	return rows
}
