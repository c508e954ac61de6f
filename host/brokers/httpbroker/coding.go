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

// decoder returns a decoder for the response's content coding (RFC 9110, section 8.4). It is nil without a body, for a
// partial body, and for a coding that was not requested, which is left to the guest.
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

// inflate decodes "deflate", which means the zlib format, although some servers send raw deflate data.
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

// decoded opens its decoder at the first Read, because opening already reads from the network.
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
