package httpbroker

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// request is one request to one target: the guest's request, or the target of a redirect.
type request struct {
	method string
	target target
	header http.Header
	body   []byte
	rule   *rule // set once it is found

	// strayed reports whether a redirect has left the origin of the first request, even if a later one returned to it.
	strayed    bool
	tenant     string             // of the call
	credential *broker.Credential // nil: none
	// placeholders are those of the call, by configuration key.
	placeholders map[string]string
	mask         *mask // of the credential

	time       time.Duration // time limit of this request
	headerSize int64         // limit of the response header, for messages
	tries      *int          // number of sent requests, including redirects
}

// newRequest validates and normalizes a guest's request.
func (b *Broker) newRequest(head *abi.HTTPRequest, body []byte) (*request, error) {
	method := strings.ToUpper(cmp.Or(head.Method, http.MethodGet))
	if !httpguts.ValidHeaderFieldName(method) || len(method) > 20 {
		return nil, &caused{abi.Errorf(abi.CodeInvalid, "%.20q is not an HTTP method", head.Method), ErrMethod}
	}
	t, err := parseTarget(head.URL)
	if err == nil {
		t, err = b.moved(t)
	}
	if err != nil {
		return nil, &caused{abi.Errorf(abi.CodeInvalid, "%s: %v", method, err), ErrURL}
	}
	if size := int64(len(body)); size > b.limits.RequestBody {
		return nil, &caused{abi.Errorf(abi.CodeLimit, "%s %s: the body has %d bytes, more than the limit of %d", method,
			t.shown(), size, b.limits.RequestBody), ErrRequestSize}
	}
	header, err := requestHeader(head.Headers, b.userAgent)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%s %s: %v", method, t.shown(), err)
	}
	limit := b.limits.Time
	if head.TimeoutMS > 0 && head.TimeoutMS < limit.Milliseconds() {
		limit = time.Duration(head.TimeoutMS) * time.Millisecond
	}
	return &request{method: method, target: t, header: header, body: body, time: limit,
		headerSize: b.limits.Header, tries: new(int)}, nil
}

// http returns r as an *http.Request.
func (r *request) http(ctx context.Context) *http.Request {
	h := &http.Request{Method: r.method, URL: r.target.url(), Host: r.target.authority(), Header: r.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(r.body) > 0 {
		h.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
		h.Body, _ = h.GetBody()
		h.ContentLength = int64(len(r.body))
	}
	switch {
	case r.credential == nil:
	case r.rule.placeholder == "":
		h.Header.Set(r.credential.Header, r.credential.Value)
	default:
		r.fillPlaceholder(h.Header)
	}
	if at := trace.From(ctx); r.rule != nil && r.rule.trace && at.Parent != "" {
		h.Header.Set(trace.ParentKey, at.Parent)
		h.Header.Del(trace.StateKey)
		if at.State != "" {
			h.Header.Set(trace.StateKey, at.State)
		}
	}
	return h.WithContext(ctx)
}

// clone returns a copy of r with its own header.
func (r *request) clone() *request {
	c := *r
	c.header = r.header.Clone()
	return &c
}

// idempotent reports whether r may be sent twice (RFC 9110, section 9.2.2).
func (r *request) idempotent() bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut,
		http.MethodDelete}, r.method)
}

// redirect returns the request to which resp, the response to r, redirects (RFC 9110, section 15.4), or nil if resp is
// no redirect.
func (b *Broker) redirect(r *request, resp *Response) (*request, error) {
	location := resp.Header.Get("Location")
	if !slices.Contains([]int{301, 302, 303, 307, 308}, resp.Status) || location == "" {
		return nil, nil
	}
	next := r.clone()
	next.rule = nil
	var err error
	if next.target, err = r.target.resolve(location); err == nil {
		next.target, err = b.moved(next.target)
	}
	if err != nil {
		return nil, abi.Errorf(abi.CodeNetwork, "%s %s: the server redirects to an unsupported URL: %v",
			r.method, r.target.shown(), err)
	}
	if next.target.origin() != r.target.origin() {
		keepCrossOrigin(next.header)
		next.strayed = true
	}
	if resp.Status == 303 && r.method != http.MethodHead || resp.Status < 303 && r.method == http.MethodPost {
		next.toGet()
	}
	return next, nil
}

// toGet changes r to a GET request, as redirects of other methods require.
func (r *request) toGet() {
	r.method, r.body = http.MethodGet, nil
	for name := range r.header {
		if strings.HasPrefix(name, "Content-") {
			delete(r.header, name)
		}
	}
}
