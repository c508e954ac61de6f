package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"golang.org/x/net/http/httpguts"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/visible"
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
	base        roundTripper
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

// roundTripper is a transport, such as *http.Transport.
type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

const (
	// headGrace bounds the time until the response header of a request that no caller waits for: a stream for
	// notifications, a response to the server's own request.
	headGrace = 10 * time.Second
	// goodbyeGrace bounds the request that ends a session.
	goodbyeGrace = 2 * time.Second
	// maxResumes is how often the stream of one call is resumed without a new event. The SDK would end the session then.
	maxResumes = 4
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

// RoundTrip sends a request, and again with another credential if the first one is refused. The response to a call is
// always a message that the SDK can decode, with a status that does not make it end the session, unless that is over:
// one call that fails does not end the others.
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	e, err := sentMessage(req)
	if err != nil {
		return nil, err
	}
	isCall := e.method != nil && e.id != nil
	if x != nil && x.method == methodDiscover && !isCall && req.Method == http.MethodPost {
		return emptied(newResponse(req, http.StatusAccepted)), nil // before initialize, no server expects it
	}
	if isCall && x != nil {
		id, _ := number(e.id)
		x.id.Store(id)
		x.sent.Store(true)
	}
	resumes := x != nil && x.id.Load() != 0 && req.Method == http.MethodGet
	if resumes && x.resumes.Add(1) > maxResumes {
		return asEvents(newResponse(req, http.StatusOK), refusal(x.id.Load(), codeInvalid,
			"its event stream broke and could not be resumed")), nil
	}
	ctx, release := r.bound(req)
	inTime := func() bool { return true }
	if _, limited := ctx.Deadline(); !limited && (x == nil || x.token == "") {
		inTime = time.AfterFunc(headGrace, release).Stop // the header must arrive in time, the body need not
	}
	resp, err := r.authorized(req.Clone(ctx))
	if late := !inTime(); err != nil {
		release()
		if late && req.Method == http.MethodGet {
			return emptied(newResponse(req, http.StatusMethodNotAllowed)), nil
		}
		return nil, err
	}
	body := resp.Body
	resp.Body = readCloser{body, closerFunc(func() error { defer release(); return body.Close() })}
	if req.Header.Get(sessionHeader) != "" {
		resp.Header.Del(sessionHeader) // the SDK breaks the connection if it is another one
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "":
		return resp, nil
	case isCall || resumes:
		return r.answer(req, resp, x, isCall), nil
	case req.Method == http.MethodPost && resp.StatusCode >= 400 && !sessionGone(req, resp.StatusCode):
		r.noise(fmt.Appendf(nil, "status %d for a notification or a response", resp.StatusCode))
		return emptied(resp, http.StatusAccepted), nil
	case req.Method == http.MethodGet && resp.StatusCode == http.StatusOK && isEventStream(resp):
		stream := r.newNotifications(ctx, req, body)
		resp.Body = readCloser{stream, closerFunc(func() error { release(); return stream.Close() })}
	case sessionGone(req, resp.StatusCode):
		return emptied(resp), nil
	}
	return resp, nil
}

const sessionHeader = "Mcp-Session-Id"

// sessionGone reports whether the status means that the server does not know the session of the request.
func sessionGone(req *http.Request, status int) bool {
	return status == http.StatusNotFound && req.Header.Get(sessionHeader) != ""
}

func isEventStream(resp *http.Response) bool { return mediaType(resp) == "text/event-stream" }

func mediaType(resp *http.Response) string {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return media
}

func newResponse(req *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)),
		Header: http.Header{}, Body: http.NoBody, Request: req}
}

// emptied returns the response without its body, and with another status if one is given.
func emptied(resp *http.Response, status ...int) *http.Response {
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = http.NoBody, 0
	for _, code := range status {
		resp.StatusCode, resp.Status = code, fmt.Sprint(code, " ", http.StatusText(code))
	}
	return resp
}

// answer returns the response to a call, or the stream with which a call is resumed or redirected.
func (r *remote) answer(req *http.Request, resp *http.Response, x *exchange, isCall bool) *http.Response {
	if x == nil {
		x = new(exchange)
	}
	id := x.id.Load()
	in := inbound{requests: new(requests), token: x.token, session: req.Header.Get(sessionHeader) != "", noise: r.noise}
	in.requests.add(id, x)
	failed := resp.StatusCode < 200 || resp.StatusCode > 299
	if !failed && isEventStream(resp) {
		resp.Body = readCloser{&eventReader{stream: r.stream(resp.Body, in), request: &id, numbered: func() {
			x.resumes.Store(0)
		}}, resp.Body}
		return resp
	}
	if isCall && sessionGone(req, resp.StatusCode) {
		x.lost.Store(true)
		return emptied(resp)
	}
	var message []byte
	if failed {
		x.status.Store(int32(resp.StatusCode))
		message = r.failure(resp, &in, x, id)
	} else {
		message = r.message(resp, &in, id)
	}
	_ = resp.Body.Close()
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	if !isCall { // the SDK expects a stream
		return asEvents(resp, message)
	}
	return withBody(resp, "application/json", message)
}

// asEvents returns the response with a stream of one message.
func asEvents(resp *http.Response, message []byte) *http.Response {
	return withBody(resp, "text/event-stream", fmt.Appendf(nil, "data: %s\n\n", message))
}

func withBody(resp *http.Response, media string, body []byte) *http.Response {
	resp.Header.Set("Content-Type", media)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp
}

// failure returns the error response for a call whose response has a status that says that it failed: the server's own
// error, or one with the status. The status 401 or 403 always shows, with the credential, because the operator has to
// act.
func (r *remote) failure(resp *http.Response, in *inbound, x *exchange, id int64) []byte {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a body that cannot be read counts as empty
	text := fmt.Sprintf("status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	e := envelopeOf(trimControls(body))
	own := failureOf(&e)
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if denied && r.credential != "" {
		text += " for the credential " + r.credential
	}
	if in.session && (resp.StatusCode == http.StatusGone || own == nil && forgotten.Match(body)) {
		x.lost.Store(true)
	}
	if own == nil {
		if len(body) > 0 {
			r.noise(fmt.Appendf(nil, "%s: %s", text, body))
		}
		return refusal(id, codeStatus, text)
	}
	if in.session && own.sessionGone() {
		x.lost.Store(true)
	}
	if denied {
		return refusal(id, codeStatus, text+": "+excerpt([]byte(own.message)))
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":%s}`, id, own.raw)
}

// message returns the response in a body that is no event stream.
func (r *remote) message(resp *http.Response, in *inbound, id int64) []byte {
	s := r.stream(resp.Body, *in)
	defer s.reset()
	_, err := io.Copy(writerFunc(func(p []byte) (int, error) {
		if err := s.add(p); err != nil || s.problem != 0 {
			return 0, cmp.Or(err, errEndless)
		}
		return len(p), nil
	}), s.source)
	kind := cmp.Or(mediaType(resp), "no content type")
	text := trimControls(s.buffer)
	switch {
	case s.problem != 0:
		return refusal(id, s.problem, refusalText[s.problem])
	case len(text) == 0 && err == nil:
		return refusal(id, codeInvalid, fmt.Sprintf("it has the status %d and no body", resp.StatusCode))
	case kind != "application/json" && (len(text) == 0 || text[0] != '{' && text[0] != '['):
		r.noise(text)
		return refusal(id, codeInvalid, fmt.Sprintf("it has the content type %s, not JSON or an event stream: check "+
			"that url is the MCP address of the server", visible.Line(kind)))
	}
	if m := in.read(text); m.answers > 0 {
		return m.answer
	}
	if err != nil {
		return refusal(id, codeInvalid, "it ended early: "+excerpt(text))
	}
	return refusal(id, codeInvalid, "it is not a response to the request: "+excerpt(text))
}

func (r *remote) stream(body io.Reader, in inbound) stream {
	return newStream(r.ctx, body, r.most, r.limiter, r.meter, in)
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

// sentMessage returns the message in a request.
func sentMessage(req *http.Request) (envelope, error) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return envelope{}, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return envelope{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	return envelopeOf(data), err
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

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type closerFunc func() error

func (f closerFunc) Close() error { return f() }
