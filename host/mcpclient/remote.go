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
	"github.com/hako-run/hako/host/broker/outbound"
)

// Credentials are the operator's; *credential.Broker is one. Credential returns what requests are to carry, and Renew
// another one after a refusal, or nil.
type Credentials interface {
	Credential(ctx context.Context, tenant, name string) (*broker.Credential, error)
	Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int,
		body []byte) (*broker.Credential, error)
}

// remote sends the requests of one connection: with the operator's headers, to the origin that they are for, and with
// bounded answers.
type remote struct {
	base        *http.Transport
	origin      string
	headers     http.Header
	credential  string
	credentials Credentials
	// most is the longest answer or event, in bytes.
	most    int
	meter   *meter
	limiter *rate.Limiter
	noise   func([]byte)
	// ctx ends with the connection, which not all requests of the SDK do.
	ctx context.Context
}

const (
	// headGrace is how long the head of an answer may take to a request that no caller waits for: a stream for
	// notifications, an answer to the server's own request.
	headGrace = 10 * time.Second
	// goodbyeGrace is how long the request that ends a session may take.
	goodbyeGrace = 2 * time.Second
	// maxRefusal is how much is read of an answer that refuses a credential, in bytes.
	maxRefusal = 64 << 10
)

// newRemote reads what spec refers to.
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
			err = errors.New("it holds characters that no header may have")
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

// config reads the files. Nil files leave what the system has.
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

// from is path as seen from dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// client follows redirects within the origin: anything else would take the session and what is asked to somebody else.
func (r *remote) client() *http.Client {
	return &http.Client{Transport: r, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if origin(req.URL) != r.origin || len(via) > 5 {
			return errRedirect
		}
		return nil
	}}
}

var errRedirect = errors.New("the server sends requests elsewhere: put that address into url")

// fate is what became of the request of a call, with the token by which its questions are known. It travels in the
// request's context, because what the SDK says of it may come after the end of the session that it leads to.
type fate struct {
	refusal atomic.Pointer[error]
	token   string
}

type fateKey struct{}

// note takes in the status of the answer.
func (f *fate) note(req *http.Request, status int) {
	var err error
	switch {
	case status == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		err = mcp.ErrSessionMissing
	case status >= http.StatusBadRequest:
		err = errors.New(http.StatusText(status))
	default:
		return
	}
	f.refusal.Store(&err)
}

// RoundTrip sends a request, once more with another credential where the first is refused.
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, release := r.bound(req)
	inTime := func() bool { return true }
	f, called := req.Context().Value(fateKey{}).(*fate)
	if _, limited := ctx.Deadline(); !limited && !called {
		inTime = time.AfterFunc(headGrace, release).Stop // the head has to come in time, the body need not
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

// bound returns the context of a request, which ends with the connection too, but for the request that says goodbye.
func (r *remote) bound(req *http.Request) (context.Context, func()) {
	if req.Method == http.MethodDelete {
		return context.WithTimeout(req.Context(), goodbyeGrace)
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// noStream is what a server answers that has no stream for notifications.
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
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what cannot be read says nothing
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

// repeat makes a request that can be sent after req has been.
func repeat(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody == nil {
		return again, nil
	}
	var err error
	again.Body, err = req.GetBody()
	return again, err
}

// bounded is the answer's body as the SDK may read it. Closing it calls release.
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
		if f, ok := req.Context().Value(fateKey{}).(*fate); ok {
			stream.token = f.token
		}
		return readCloser{stream, closer}
	}
	return readCloser{&object{body: counted{body, &r.meter.bytes}, most: r.most, meter: r.meter, req: req}, closer}
}

// object is an answer of one JSON object. In the place of one that is too large or holds too much goes an error.
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

// message reads the object, as far as it is neither too large nor holds too much.
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

// requestID is the id of the message in a request, nil if it has none.
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
