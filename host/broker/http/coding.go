package httpbroker

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// decoder returns what undoes the answer's content coding (RFC 9110, section 8.4), or nil if there is nothing to undo: no
// body, part of one, or a coding that was not asked for, which is left to the guest.
func decoder(r *request, h *http.Response) func(io.Reader) (io.Reader, error) {
	if r.method == http.MethodHead || h.StatusCode == http.StatusPartialContent || h.ContentLength == 0 {
		return nil
	}
	switch strings.ToLower(strings.Join(h.Header["Content-Encoding"], ",")) {
	case "gzip", "x-gzip":
		return func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		return inflate
	}
	return nil
}

// inflate reads "deflate", which is the zlib format but which some servers take for bare deflate data.
func inflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if len(head) == 0 {
		return nil, err
	}
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// decoded opens its decoder at the first read, because that reads from the network already.
type decoded struct {
	source io.ReadCloser
	open   func(io.Reader) (io.Reader, error)
	reader io.Reader
}

func (d *decoded) Read(p []byte) (int, error) {
	if d.reader == nil {
		reader, err := d.open(d.source)
		if err != nil {
			return 0, err
		}
		d.reader = reader
	}
	return d.reader.Read(p)
}

func (d *decoded) Close() error { return d.source.Close() }
