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

// Events returns the data of each event of a stream, until the end or the first error of r. A line of more than limit
// bytes is an error, bufio.ErrTooLong. An event that the stream ends in is left out, and so are events without data.
// The data is valid until the next event. Lines end with LF or CRLF; no server is known that sends CR alone.
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
			switch {
			case len(line) > limit:
				err = bufio.ErrTooLong
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case errors.Is(err, io.EOF):
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			line = line[:0]
			if len(text) == 0 {
				if len(data) > 0 && !yield(bytes.TrimSuffix(data, []byte("\n")), nil) {
					return
				}
				data = data[:0]
				continue
			}
			if field, value, _ := bytes.Cut(text, []byte(":")); string(field) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		}
	}
}
