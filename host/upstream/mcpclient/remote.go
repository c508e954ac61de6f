package mcpclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/outbound"
)

// Credentials applies the operator's credentials, like *credential.Broker. Credential returns what requests carry.
// Renew returns another credential after a refusal, or nil.
type Credentials interface {
	Credential(ctx context.Context, tenant, name string) (*broker.Credential, error)
	Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int,
		body []byte) (*broker.Credential, error)
}

// remote sends the requests of one connection, with the operator's headers, only to the origin of the URL. It bounds
// the responses.
type remote struct {
	base        *http.Transport
	origin      string
	headers     http.Header
	credential  string
	credentials Credentials
	// most bounds a response or an event, in bytes.
	most    int
	meter   *meter
	limiter *rate.Limiter
	noise   func([]byte)
	// ctx ends with the connection. Some requests of the SDK outlive it otherwise.
	ctx context.Context
}

const (
	// headGrace bounds the time until the response header of a request that no caller waits for: a stream for
	// notifications, a response to the server's own request.
	headGrace = 10 * time.Second
	// goodbyeGrace bounds the request that ends a session.
	goodbyeGrace = 2 * time.Second
	// maxRefusal bounds what is read of a response that refuses a credential, in bytes.
	maxRefusal = 64 << 10
)

// newRemote resolves what spec refers to.
func newRemote(ctx context.Context, spec *Spec, env environment, options *Options) (*remote, string, error) {
	filled, err := env.expand(spec.URL)
	if err != nil {
		return nil, "", err
	}
	endpoint, err := spec.endpoint(filled)
	if err != nil {
		return nil, "", err
	}
	r := &remote{origin: origin(endpoint), headers: http.Header{}, credential: spec.Credential,
		credentials: options.Credentials, ctx: ctx}
	for name, v := range spec.Headers {
		value, err := env.value(ctx, v)
		if err == nil && !httpguts.ValidHeaderFieldValue(value) {
			err = errors.New("it contains characters that headers must not contain")
		}
		if err != nil {
			return nil, "", fmt.Errorf("headers.%s: %w", name, err)
		}
		r.headers.Set(name, value)
	}
	if spec.Credential != "" && options.Credentials == nil {
		return nil, "", fmt.Errorf("credential %s: there are no credentials here", spec.Credential)
	}
	config, err := spec.TLS.config(options.Dir)
	if err != nil {
		return nil, "", err
	}
	transport := outbound.NewTransport(options.Proxy)
	transport.TLSClientConfig, transport.ForceAttemptHTTP2 = config, false
	r.base = transport
	return r, filled, nil
}

// config reads the files. Without files it uses the system's certificates.
func (t TLS) config(dir string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(from(dir, t.CA))
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(from(dir, t.Cert), from(dir, t.Key))
		if err != nil {
			return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// from returns path relative to dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// client follows redirects only within the origin. Others would send the session and the requests to another server.
func (r *remote) client() *http.Client {
	return &http.Client{Transport: r, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if origin(req.URL) != r.origin || len(via) > 5 {
			return errRedirect
		}
		return nil
	}}
}

var errRedirect = errors.New("the server redirects to another address: set url to that address")

// callOutcome records the outcome of a call's HTTP request, and has the token for its questions. It is in the request's
// context, because the SDK reports the outcome only after it has ended the session.
type callOutcome struct {
	refusal atomic.Pointer[error]
	token   string
}

type callOutcomeKey struct{}

// note records the status of the response.
func (c *callOutcome) note(req *http.Request, status int) {
	var err error
	switch {
	case status == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		err = mcp.ErrSessionMissing
	case status >= http.StatusBadRequest:
		err = errors.New(http.StatusText(status))
	default:
		return
	}
	c.refusal.Store(&err)
}

// RoundTrip sends a request, and again with another credential if the first one is refused.
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, release := r.bound(req)
	inTime := func() bool { return true }
	f, called := req.Context().Value(callOutcomeKey{}).(*callOutcome)
	if _, limited := ctx.Deadline(); !limited && !called {
		inTime = time.AfterFunc(headGrace, release).Stop // the header must arrive in time, the body need not
	}
	resp, err := r.authorized(req.Clone(ctx))
	if called && err == nil {
		f.note(req, resp.StatusCode)
	}
	if late := !inTime(); err != nil {
		release()
		if late && req.Method == http.MethodGet {
			return noStream(req), nil
		}
		return nil, err
	}
	resp.Body = r.bounded(req, resp, release)
	return resp, nil
}

// bound returns the context of a request, which also ends with the connection. The request that ends the session
// outlives it.
func (r *remote) bound(req *http.Request) (context.Context, func()) {
	if req.Method == http.MethodDelete {
		return context.WithTimeout(req.Context(), goodbyeGrace)
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// noStream is the response of a server without a stream for notifications.
func noStream(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusMethodNotAllowed, Status: "405 Method Not Allowed",
		Header: http.Header{}, Body: http.NoBody, Request: req}
}

func (r *remote) authorized(req *http.Request) (*http.Response, error) {
	maps.Copy(req.Header, r.headers)
	if r.credential == "" {
		return r.base.RoundTrip(req)
	}
	c, err := r.credentials.Credential(req.Context(), "", r.credential)
	if err != nil {
		return nil, err
	}
	req.Header.Set(c.Header, c.Value)
	resp, err := r.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a body that cannot be read counts as empty
	other, err := r.credentials.Renew(req.Context(), "", r.credential, c, resp.StatusCode, body)
	if err != nil || other == nil {
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, err
	}
	resp.Body.Close()
	again, err := repeat(req)
	if err != nil {
		return nil, err
	}
	again.Header.Set(other.Header, other.Value)
	return r.base.RoundTrip(again)
}

// repeat returns a copy of req that can be sent after it.
func repeat(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody == nil {
		return again, nil
	}
	var err error
	again.Body, err = req.GetBody()
	return again, err
}

// bounded returns the response body for the SDK. Closing it calls release.
func (r *remote) bounded(req *http.Request, resp *http.Response, release func()) io.ReadCloser {
	body := resp.Body
	closer := closerFunc(func() error { defer release(); return body.Close() })
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		owed := new(atomic.Int64)
		if req.Method == http.MethodPost {
			owed.Store(1)
		}
		stream := newLines(r.ctx, body, r.most, r.limiter, r.meter, owed, r.noise, true)
		if f, ok := req.Context().Value(callOutcomeKey{}).(*callOutcome); ok {
			stream.token = f.token
		}
		return readCloser{stream, closer}
	}
	return readCloser{&object{body: counted{body, &r.meter.bytes}, most: r.most, meter: r.meter, req: req}, closer}
}

// object is the body of a response with one JSON object. An object that is too large or holds too many values is
// replaced with an error.
type object struct {
	body  io.Reader
	most  int
	meter *meter
	req   *http.Request

	read io.Reader
}

func (o *object) Read(p []byte) (int, error) {
	if o.read == nil {
		data, problem, err := o.message()
		if err != nil {
			return 0, err
		}
		if problem == 0 && repeatsKey(data) {
			problem = codeTwice
		}
		if problem != 0 {
			data = refusal(requestID(o.req), problem)
		}
		o.read = bytes.NewReader(exact(data))
	}
	return o.read.Read(p)
}

// message reads the object. It returns the code of the problem if the object exceeds a limit.
func (o *object) message() (data []byte, problem int64, err error) {
	var s shape
	defer func() { o.meter.values.Add(int64(s.values)) }()
	part := make([]byte, 32<<10)
	for {
		n, err := o.body.Read(part)
		s.add(part[:n])
		switch data = append(data, part[:n]...); {
		case len(data) > o.most:
			return nil, codeTooLarge, nil
		case s.tooMuch():
			return nil, codeTooMuch, nil
		case err == io.EOF:
			return data, 0, nil
		case err != nil:
			return nil, 0, err
		}
	}
}

// requestID returns the id of the message in a request, or nil.
func requestID(req *http.Request) json.RawMessage {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if json.NewDecoder(body).Decode(&message) != nil {
		return nil
	}
	return message.ID
}

// counted counts what is read.
type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }
