package httpbroker

import (
	"bytes"
	"io"
	"net/http"

	"github.com/hako-run/hako/pdk/abi"
)

// Response is the final answer to a request, whatever its status.
type Response struct {
	Status int
	// Header has canonical names, and neither hop-by-hop headers nor those of an encoding that the host has undone.
	Header http.Header
	// URL is the one that answered, after redirects, normalised.
	URL string
	// Credential are the public facts about the credential that was sent, if one was.
	Credential map[string]string
	// Body must be closed. Reading fails with an error that holds an *abi.Error when a limit is passed, the connection breaks
	// or the request's context ends, at once in each case.
	Body io.ReadCloser

	source string
}

// Sources of an answer, for Observation.
const (
	SourceNetwork   = "network"
	SourceCache     = "cache"
	SourceRecording = "recording"
)

// newResponse puts the limits around what the network answered and undoes its content coding.
func newResponse(r *request, h *http.Response, limits *Limits) (*Response, error) {
	dropHopByHop(h.Header)
	resp := &Response{Status: h.StatusCode, Header: h.Header, source: SourceNetwork}
	tooLarge := failf(abi.CodeLimit, "%s %s: the answer's body is larger than the limit of %d bytes", r.method, r.target.shown(), limits.ResponseBody)
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
			err: failf(abi.CodeLimit, "%s %s: the answer's body is larger than the limit of %d bytes once it is decompressed",
				r.method, r.target.shown(), limits.Decompressed),
		}
	}
	return resp, nil
}

// bytesResponse is an answer that is in memory.
func bytesResponse(status int, header http.Header, body []byte, source string) *Response {
	return &Response{Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), source: source}
}

// discard gives up the answer, reading a little of it where that lets the connection be used again.
func (r *Response) discard() {
	_, _ = io.CopyN(io.Discard, r.Body, 4<<10)
	_ = r.Body.Close()
}

// limited fails with err once more than left bytes have come.
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
