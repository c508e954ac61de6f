package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hako-run/hako/host/broker/outbound"
)

const (
	// maxAnswer bounds what is read of one answer, in bytes.
	maxAnswer = 64 << 20
	// maxFailure bounds what is read of an error, in bytes.
	maxFailure = 64 << 10
	// dialTime bounds connecting to a provider.
	dialTime = 15 * time.Second
)

// What a transport finds wrong with an answer.
var (
	errSilent   = errors.New("it was silent for too long")
	errTooLong  = fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	errRedirect = errors.New("it redirects to another address, which the key is not sent to: set baseUrl to that address")
	errNoStream = errors.New("its answer is no event stream: check that baseUrl is where the API is")
)

// NewTransport returns what reaches a provider's API, through proxy if it is not nil, but for this machine's own addresses. The
// environment's proxy plays no part.
func NewTransport(proxy *url.URL) *http.Transport {
	t := outbound.NewTransport(proxy)
	t.DialContext = (&net.Dialer{Timeout: dialTime}).DialContext
	t.TLSHandshakeTimeout = dialTime
	t.MaxIdleConnsPerHost = 16
	return t
}

// newHTTPClient returns the client for one provider. It follows no redirects: they would take what is asked, and a key in a header of the
// provider's own, to somebody else.
func newHTTPClient(proxy *url.URL, silence time.Duration) *http.Client {
	return &http.Client{
		Transport:     &transport{NewTransport(proxy), silence},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport gives an answer up that does not come, does not end or is no stream.
type transport struct {
	next    http.RoundTripper
	silence time.Duration
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	watch := time.AfterFunc(t.silence, func() { cancel(errSilent) })
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err == nil {
		response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, watch: watch, silence: t.silence, left: maxAnswer}
		if err = checkStream(response); err == nil {
			return response, nil
		}
		_ = response.Body.Close()
	}
	watch.Stop()
	err = silent(ctx, err)
	cancel(nil)
	return nil, err
}

// checkStream refuses answers that are no stream: the SDKs would read some as an empty one, and errors only in their vendor's form.
func checkStream(r *http.Response) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.StatusCode >= 400:
		text, _ := io.ReadAll(io.LimitReader(r.Body, maxFailure)) // as far as it comes
		return &statusError{r.StatusCode, r.Header, text}
	case r.StatusCode >= 300:
		return errRedirect
	case kind != "text/event-stream":
		return errNoStream
	}
	return nil
}

// statusError is an answer with the status of an error.
type statusError struct {
	status int
	header http.Header
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d", e.status) }

// silent is err, or errSilent if that is its cause.
func silent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// body is an answer's.
type body struct {
	io.ReadCloser
	ctx     context.Context // of this request
	cancel  context.CancelCauseFunc
	watch   *time.Timer
	silence time.Duration
	left    int64
	once    sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.watch.Reset(b.silence)
	if err != nil && !errors.Is(err, io.EOF) {
		err = silent(b.ctx, err)
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
