package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hako-run/hako/host/outbound"
)

const (
	// maxAnswer bounds a response, in bytes.
	maxAnswer = 64 << 20
	// maxFailure bounds an error response, in bytes.
	maxFailure = 64 << 10
)

// Errors of the transport.
var (
	errIdle     = errors.New("it sent nothing within the time limit")
	errTooLong  = fmt.Errorf("its response is larger than %d MiB", maxAnswer>>20)
	errRedirect = errors.New(
		"it redirects to another address, to which the key is not sent: set baseUrl to that address")
	errNoStream  = errors.New("its response is not an event stream: check that baseUrl is the address of the API")
	errMalformed = errors.New("its response violates the API: check that baseUrl is the address of the API")
)

// newHTTPClient returns the client for one provider. It follows no redirects: they would send the conversation, and a
// key in a vendor-specific header, to another host.
func newHTTPClient(proxy *url.URL, idleTimeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     &transport{outbound.NewTransport(proxy), idleTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport fails requests whose response stalls, is too long or is not an event stream.
type transport struct {
	next        http.RoundTripper
	idleTimeout time.Duration
}

// CloseIdleConnections is for http.Client's method of this name.
func (t *transport) CloseIdleConnections() {
	(&http.Client{Transport: t.next}).CloseIdleConnections()
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	watch := time.AfterFunc(t.idleTimeout, func() { cancel(errIdle) })
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err == nil {
		response.Body = &body{
			ReadCloser: response.Body, ctx: ctx, cancel: cancel, watch: watch, idleTimeout: t.idleTimeout,
			left: maxAnswer,
		}
		if err = checkStream(response); err == nil {
			return response, nil
		}
		_ = response.Body.Close()
	}
	watch.Stop()
	err = idleError(ctx, err)
	cancel(nil)
	return nil, err
}

// checkStream rejects responses that are not event streams. Some of them would be read as empty streams.
func checkStream(r *http.Response) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.StatusCode >= 400:
		text, _ := io.ReadAll(io.LimitReader(r.Body, maxFailure)) // a partial body may do
		return &statusError{r.StatusCode, r.Header, text}
	case r.StatusCode >= 300:
		return errRedirect
	case kind != "text/event-stream":
		return errNoStream
	}
	return nil
}

// statusError is an error response, or an error within a stream. That has no status and no header.
type statusError struct {
	status int
	header http.Header
	body   []byte
}

func (e *statusError) Error() string {
	if e.status == 0 {
		return "an error in the event stream"
	}
	return fmt.Sprintf("HTTP status %d", e.status)
}

// idleError returns errIdle if that is why ctx ended, else err.
func idleError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errIdle) {
		return errIdle
	}
	return err
}

// body bounds a response's size and the time between reads.
type body struct {
	io.ReadCloser
	ctx         context.Context // the request's
	cancel      context.CancelCauseFunc
	watch       *time.Timer
	idleTimeout time.Duration
	left        int64
	once        sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.watch.Reset(b.idleTimeout)
	if err != nil && !errors.Is(err, io.EOF) {
		err = idleError(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.once.Do(func() {
		b.watch.Stop()
		b.cancel(nil)
	})
	return b.ReadCloser.Close()
}
