// Package eventstream reads server-sent events (html.spec.whatwg.org/multipage/server-sent-events.html). Events yields
// the data of each event, within a limit on its size.
package eventstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

const byteOrderMark = "\ufeff"

// ErrUnended comes with the data of an event without the blank line after it, at the end of the stream. The data may be
// cut.
var ErrUnended = errors.New("the stream ends within an event")

// Events returns the data of each event of a stream, until the end or the first error of r. A line of more than limit
// bytes is an error, bufio.ErrTooLong. An event that the stream ends in comes with ErrUnended. Events without data are
// left out. The data is valid until the next event. Lines end with LF or CRLF; no server is known that sends CR alone.
func Events(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReader(r)
		if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
			_, _ = in.Discard(len(mark))
		}
		var line, data []byte
		for {
			// bufio.Scanner would search the whole line for its end after each read.
			part, err := in.ReadSlice('\n')
			line = append(line, part...)
			ended := errors.Is(err, io.EOF)
			switch {
			case len(line) > limit:
				err = bufio.ErrTooLong
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case ended:
				err = nil
			}
			if err != nil {
				yield(nil, err)
				return
			}
			text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			line = line[:0]
			if field, value, _ := bytes.Cut(text, []byte(":")); string(field) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
			switch event := bytes.TrimSuffix(data, []byte("\n")); {
			case ended:
				if len(event) > 0 {
					yield(event, ErrUnended)
				}
				return
			case len(text) == 0:
				if len(data) > 0 && !yield(event, nil) {
					return
				}
				data = data[:0]
			}
		}
	}
}
