// Package eventstream reads server-sent events (html.spec.whatwg.org/multipage/server-sent-events.html).
package eventstream

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// Events returns the data of each event of a stream, until the end or the first error of r. A line of more than limit
// bytes is an error, bufio.ErrTooLong. An event that the stream ends in is left out, and so are events without data.
// The data is valid until the next event.
func Events(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, limit)
		var data []byte
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if len(data) > 0 && !yield(bytes.TrimSuffix(data, []byte("\n")), nil) {
					return
				}
				data = data[:0]
				continue
			}
			if field, value, _ := bytes.Cut(line, []byte(":")); string(field) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
