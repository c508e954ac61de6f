package pdk

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// HTTPRequest is a request for Fetch. An empty Method means GET.
type HTTPRequest struct {
	Method string
	URL    string
	Header map[string]string
	Body   []byte
	// MaxBody bounds the response body, in bytes. Zero means the host's limit.
	MaxBody int64
}

// HTTPResponse is a response with any status. Header names are in canonical form ("Content-Type"); Header has the first
// of several values.
type HTTPResponse struct {
	Status int
	Header map[string]string
	Body   []byte
	// URL is the final URL, after redirects.
	URL string
	// Credential has public facts about the operator's credential that the host applied, such as freee's "company_id".
	// It is empty if there was none, and while recordings are replayed.
	Credential map[string]string
}

// Fetch sends a request through the host, which checks it against the plugin's grants. An error is an *abi.Error whose
// code reports whether the request was not granted, timed out or failed on the network. A status of 4xx or 5xx is not
// an error. Package pdkhttp has an http.RoundTripper for programs that use net/http.
func Fetch(ctx context.Context, request *HTTPRequest) (*HTTPResponse, error) {
	answer, body, err := Send(ctx, request.head(), request.Body)
	if err != nil {
		return nil, err
	}
	return request.response(answer, body)
}

// Start is Fetch without waiting: the request is under way when Start returns, and Wait gives the response. A call has
// at most 8 requests under way, and fewer while other calls of the plugin have many; one more is an *abi.Error with
// CodeLimit or CodeBusy, to be met by waiting for one of those that were started. What is still under way when the call
// ends is canceled. Hosts that lack the function refuse the plugin.
func Start(ctx context.Context, request *HTTPRequest) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sent, err := hostStart(ctx, request.head(), request.Body)
	if err != nil {
		return nil, err
	}
	return &Pending{request, sent}, nil
}

// Pending is a request that was started. It must be waited for or canceled, once.
type Pending struct {
	request *HTTPRequest
	sent    *started
}

// Wait waits for the response and reads it.
func (p *Pending) Wait() (*HTTPResponse, error) {
	answer, body, err := p.sent.wait()
	if err != nil {
		return nil, err
	}
	return p.request.response(answer, body)
}

// Cancel gives the request up.
func (p *Pending) Cancel() { p.sent.cancel() }

func (r *HTTPRequest) head() *abi.HTTPRequest {
	head := &abi.HTTPRequest{Method: r.Method, URL: r.URL, Headers: map[string][]string{}}
	if head.Method == "" {
		head.Method = "GET"
	}
	for name, value := range r.Header {
		head.Headers[name] = []string{value}
	}
	return head
}

// response reads the body to its end and closes it.
func (r *HTTPRequest) response(answer *abi.HTTPResponse, body io.ReadCloser) (*HTTPResponse, error) {
	defer body.Close()
	response := &HTTPResponse{Status: answer.Status, URL: answer.URL, Header: map[string]string{},
		Credential: answer.Credential}
	for name, values := range answer.Headers {
		if len(values) > 0 {
			response.Header[name] = values[0]
		}
	}
	var err error
	if response.Body, err = readBody(body, r.MaxBody); err != nil {
		return nil, fmt.Errorf("read %s: %w", withoutQuery(r.URL), err)
	}
	return response, nil
}

// Send is Fetch with the types of package abi and the body as a stream, which the caller must close.
func Send(ctx context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return hostSend(ctx, head, body)
}

func readBody(body io.Reader, limit int64) ([]byte, error) {
	if limit <= 0 {
		return io.ReadAll(body)
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &abi.Error{Code: abi.CodeLimit, Message: fmt.Sprintf("the answer is larger than %d bytes", limit)}
	}
	return data, err
}

func withoutQuery(url string) string {
	base, _, _ := strings.Cut(url, "?")
	return base
}
