package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Of each stream a model gets the beginning and the end, this many bytes of each.
const (
	keepHead = 48 << 10
	keepTail = 48 << 10
)

// excerpt keeps the beginning and the end of a stream. The zero value is empty.
type excerpt struct {
	head  []byte
	tail  []byte // at most 2*keepTail, of which the last keepTail count
	total int
}

func (e *excerpt) add(data []byte) {
	e.total += len(data)
	n := min(len(data), keepHead-len(e.head))
	e.head = append(e.head, data[:n]...)
	e.tail = append(e.tail, data[n:]...)
	if extra := len(e.tail) - keepTail; extra > keepTail {
		e.tail = append(e.tail[:0], e.tail[extra:]...)
	}
}

// cut returns the number of bytes that are left out.
func (e *excerpt) cut() int { return max(0, e.total-keepHead-keepTail) }

// text returns the excerpt as UTF-8, with a note where something is left out; replaced says that it holds U+FFFD for
// bytes that are no UTF-8.
func (e *excerpt) text(ctx context.Context) (text string, replaced bool) {
	head, tail := e.head, e.tail[max(0, len(e.tail)-keepTail):]
	note := ""
	if cut := e.cut(); cut > 0 {
		head, tail = wholeEnd(head), wholeStart(tail)
		note = say(ctx, "\n[... %d bytes left out ...]\n", "\n[... %d バイト省略 ...]\n", e.total-len(head)-len(tail))
	} else {
		head, tail = append(head[:len(head):len(head)], tail...), nil
	}
	replaced = !utf8.Valid(head) || !utf8.Valid(tail)
	return strings.ToValidUTF8(string(head), "\uFFFD") + note + strings.ToValidUTF8(string(tail), "\uFFFD"), replaced
}

// wholeEnd drops a character that is cut off at the end.
func wholeEnd(data []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(data)); i++ {
		if last := data[len(data)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// wholeStart drops the rest of a character that is cut off at the start.
func wholeStart(data []byte) []byte {
	for i := range min(utf8.UTFMax, len(data)) {
		if utf8.RuneStart(data[i]) {
			return data[i:]
		}
	}
	return data
}

// maxLine is the longest line that is reported, in bytes.
const maxLine = 200

// lastLine keeps the last line with something in it. The zero value is empty.
type lastLine struct{ rest, line string }

func (l *lastLine) add(data []byte) {
	lines := strings.FieldsFunc(l.rest+string(data), func(r rune) bool { return r == '\n' || r == '\r' })
	l.rest = ""
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			l.line = line
		}
	}
	if n := len(lines); n > 0 && data[len(data)-1] != '\n' {
		l.rest = string(wholeEnd([]byte(lines[n-1][:min(len(lines[n-1]), 4*maxLine)])))
	}
}

// String is the line, shortened, without control characters.
func (l *lastLine) String() string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(l.line, "\uFFFD"))
	if len(text) > maxLine {
		text = string(wholeEnd([]byte(text[:maxLine]))) + "…"
	}
	return text
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }
