package httpbroker

import (
	"bytes"
	"io"
	"net/http"

	"github.com/hako-run/hako/pdk/abi"
)

// Response is the final response to a request, with any status.
type Response struct {
	Status int
	// Header has canonical names. Hop-by-hop headers and the headers of a decoded content coding are removed.
	Header http.Header
	// URL is the normalized URL of the final request, after redirects.
	URL string
	// Credential are the public properties of the credential that was sent, if any.
	Credential map[string]string
	// Body must be closed. Reading fails with an error that contains an *abi.Error as soon as a limit is exceeded, the
	// connection breaks or the request's context ends.
	Body io.ReadCloser

	source string
}

// Sources of a response, for Observation.
const (
	SourceNetwork   = "network"
	SourceCache     = "cache"
	SourceRecording = "recording"
)

// newResponse applies the limits to a response of the network and decodes its content coding.
func newResponse(r *request, h *http.Response, limits *Limits) (*Response, error) {
	dropHopByHop(h.Header)
	resp := &Response{Status: h.StatusCode, Header: h.Header, source: SourceNetwork}
	tooLarge := &caused{abi.Errorf(abi.CodeLimit, "%s %s: the response body is larger than the limit of %d bytes",
		r.method, r.target.shown(), limits.ResponseBody), ErrResponseSize}
	if h.ContentLength > limits.ResponseBody && r.method != http.MethodHead {
		_ = h.Body.Close()
		return nil, tooLarge
	}
	resp.Body = &limited{ReadCloser: h.Body, left: limits.ResponseBody, err: tooLarge}
	if open := decoder(r, h); open != nil {
		h.Header.Del("Content-Encoding")
		h.Header.Del("Content-Length")
		resp.Body = &limited{
			ReadCloser: &decoded{source: resp.Body, open: open},
			left:       limits.Decompressed,
			err: &caused{abi.Errorf(abi.CodeLimit,
				"%s %s: the response body is larger than the limit of %d bytes once it "+
					"is decompressed", r.method, r.target.shown(), limits.Decompressed), ErrResponseSize},
		}
	}
	return resp, nil
}

// bytesResponse returns a response with a body in memory.
func bytesResponse(status int, header http.Header, body []byte, source string) *Response {
	return &Response{Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), source: source}
}

// discard closes the response. It reads a little of the body before, so that the connection can be reused.
func (r *Response) discard() {
	_, _ = io.CopyN(io.Discard, r.Body, 4<<10)
	_ = r.Body.Close()
}

// limited fails with err after left bytes.
type limited struct {
	io.ReadCloser
	left int64
	err  error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, l.err
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.err
	}
	return n, err
}
