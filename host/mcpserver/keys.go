package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

type unavailableKey struct{}

// keySet tells the caller, through the context, when a token could not be checked at all: the verifier hides that from it.
type keySet struct{ inner oidc.KeySet }

func (k *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.inner.VerifySignature(ctx, jwt)
	if unavailable, ok := ctx.Value(unavailableKey{}).(*bool); ok {
		*unavailable = errors.Is(err, errUnavailable)
	}
	return payload, err
}

const (
	// sparingInterval is how often an issuer is asked for the same document at most. Otherwise anybody could make this server
	// send it a request for every made-up token.
	sparingInterval = 10 * time.Second
	maxDocument     = 1 << 20
)

// sparing is a RoundTripper for an issuer's documents. It repeats an answer, or a failure, until sparingInterval has passed.
type sparing struct {
	inner http.RoundTripper

	mu      sync.Mutex
	answers map[string]*answer // by URL
}

type answer struct {
	// mu is held while the answer is fetched.
	mu      sync.Mutex
	fetched time.Time
	header  http.Header
	body    []byte
	err     error
}

func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	known, ok := s.answers[r.URL.String()]
	if !ok {
		known = new(answer)
		s.answers[r.URL.String()] = known
	}
	s.mu.Unlock()

	known.mu.Lock()
	defer known.mu.Unlock()
	if known.fetched.IsZero() || time.Since(known.fetched) >= sparingInterval {
		known.header, known.body, known.err = s.fetch(r)
		known.fetched = time.Now()
	}
	if known.err != nil {
		return nil, fmt.Errorf("%w: %v", errUnavailable, known.err)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: known.header.Clone(), Body: io.NopCloser(bytes.NewReader(known.body)), Request: r,
	}, nil
}

func (s *sparing) fetch(r *http.Request) (http.Header, []byte, error) {
	inner := s.inner
	if inner == nil {
		inner = http.DefaultTransport
	}
	// Others wait for this answer too, so it must not end with the request that happened to come first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	response, err := inner.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answers %s", r.URL.Redacted(), response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("%s is larger than %d bytes", r.URL.Redacted(), maxDocument)
	}
	return response.Header, body, err
}
