// Package issuer verifies tokens of OpenID Connect issuers and logs people in there: Keys fetches and caches their
// public keys, Check validates headers of tokens, Discover fetches discovery documents, and LoginClient runs logins.
package issuer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/strictjson"
)

const (
	// MaxAge is the time for which fetched keys are trusted. A key that the issuer withdraws becomes invalid within
	// that time, and so do all keys while the issuer cannot be reached.
	MaxAge = 5 * time.Minute
	// renewAge is the age at which one request fetches the keys again, while others still use the cached ones.
	renewAge = time.Minute
	// RetryInterval is the minimum time between two requests to an issuer. Otherwise every forged token could cause a
	// request.
	RetryInterval = 10 * time.Second

	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20
	// minModulus is the smallest RSA key, in bits (RFC 7518, section 3.3).
	minModulus = 2048
)

// Algorithms are the accepted signature algorithms. All are asymmetric; with a symmetric one the public key would
// suffice to sign.
var Algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256,
	oidc.ES384, oidc.ES512, oidc.EdDSA,
}

var algorithms = func() (list []jose.SignatureAlgorithm) {
	for _, name := range Algorithms {
		list = append(list, jose.SignatureAlgorithm(name))
	}
	return list
}()

// ErrUnavailable means that there are no keys younger than MaxAge.
var ErrUnavailable = errors.New("the issuer's keys are not available")

// errSignature means that no key of the issuer verifies the signature.
var errSignature = errors.New("no key of the issuer verifies the signature")

// Options configures Keys. URL and Location are needed.
type Options struct {
	// URL is the issuer's name in the log.
	URL string
	// Location returns the URL of the key set. It is called before each fetch.
	Location func(context.Context) (string, error)
	// Client fetches the key set; see NewClient. Redirects are not followed.
	Client *http.Client
	// Now is the server's clock. Nil means time.Now.
	Now func() time.Time
	// Logger receives failed fetches. Nil discards them.
	Logger *slog.Logger
}

// Keys are the signing keys of one issuer (RFC 7517). They are fetched for the first token, and again before they reach
// MaxAge. Keys is safe for concurrent use.
type Keys struct {
	options Options
	// fetching is held during a fetch, so that all waiting requests share it.
	fetching sync.Mutex
	state    atomic.Pointer[state]
}

var _ oidc.KeySet = (*Keys)(nil)

// state is the result of the last fetches.
type state struct {
	keys []jose.JSONWebKey
	// fetched is the time of the last successful fetch, tried of the last attempt; zero means never.
	fetched, tried time.Time
	// err is the error of the last fetch.
	err error
}

// NewKeys returns the keys of an issuer without fetching them.
func NewKeys(options Options) *Keys {
	k := &Keys{options: options}
	if k.options.Now == nil {
		k.options.Now = time.Now
	}
	if k.options.Logger == nil {
		k.options.Logger = slog.New(slog.DiscardHandler)
	}
	k.options.Client = WithoutRedirects(options.Client)
	k.state.Store(new(state))
	return k
}

// WithoutRedirects returns a copy of client that does not follow redirects, because the configured address alone is
// trusted. A client without a transport gets that of NewClient without a proxy.
func WithoutRedirects(client *http.Client) *http.Client {
	other := *client
	if other.Transport == nil {
		other.Transport = NewClient(nil).Transport
	}
	other.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &other
}

// VerifySignature returns the payload of a JWT that one of the keys has signed. The error matches ErrUnavailable if
// there are no trusted keys.
func (k *Keys) VerifySignature(_ context.Context, jwt string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(jwt, algorithms)
	if err != nil {
		return nil, err
	}
	known := k.state.Load()
	if age := k.since(known.fetched); age > renewAge {
		known = k.fetch(known, age > MaxAge)
	}
	if k.since(known.fetched) > MaxAge {
		return nil, ErrUnavailable
	}
	if payload, ok := known.verify(token); ok {
		return payload, nil
	}
	// The issuer may have a new key.
	known = k.fetch(known, true)
	if payload, ok := known.verify(token); ok && k.since(known.fetched) <= MaxAge {
		return payload, nil
	}
	if known.err != nil {
		return nil, ErrUnavailable
	}
	return nil, errSignature
}

// since returns the time since t by the server's clock. It returns the maximum duration for a zero t, and for a future
// t, which means that the clock was set back.
func (k *Keys) since(t time.Time) time.Duration {
	if age := k.options.Now().Sub(t); !t.IsZero() && age >= 0 {
		return age
	}
	return 1<<63 - 1
}

// fetch fetches the keys and returns the new state. If another goroutine is fetching, it waits for the result, or
// without wait returns known.
func (k *Keys) fetch(known *state, wait bool) *state {
	if wait {
		k.fetching.Lock()
	} else if !k.fetching.TryLock() {
		return known
	}
	defer k.fetching.Unlock()
	if latest := k.state.Load(); latest != known || k.since(latest.tried) < RetryInterval {
		return latest
	}
	// Other requests share the fetch, so it must not be canceled with the first one.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	next := &state{keys: known.keys, fetched: known.fetched}
	begun := k.options.Now()
	keys, err := k.load(ctx)
	next.tried = k.options.Now()
	if next.err = err; err == nil {
		next.keys, next.fetched = keys, begun
	} else {
		k.options.Logger.Warn("the keys of an issuer could not be fetched: "+
			"its tokens are refused when the known keys are too old",
			"issuer", k.options.URL, "err", err, "trusted", max(0, MaxAge-k.since(known.fetched)).Round(time.Second),
			"limit", MaxAge)
	}
	k.state.Store(next)
	return next
}

func (k *Keys) load(ctx context.Context) ([]jose.JSONWebKey, error) {
	location, err := k.options.Location(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	response, err := k.options.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", request.URL.Redacted(), response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("%s is larger than %d bytes", request.URL.Redacted(), maxDocument)
	}
	return parseKeys(body)
}

// parseKeys parses a key set. It omits keys that must not sign tokens and keys of unknown kinds.
func parseKeys(document []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := strictjson.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("the key set is malformed: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, encoded := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(encoded, &key) == nil && isForSignatures(&key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func isForSignatures(key *jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" || !key.Valid() {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minModulus
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// verify returns the token's payload if one of the keys has signed it.
func (s *state) verify(token *jose.JSONWebSignature) ([]byte, bool) {
	header := token.Signatures[0].Protected
	for i := range s.keys {
		key := &s.keys[i]
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := token.Verify(key.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// Discovery is an issuer's discovery document (OpenID Connect Discovery 1.0, section 3).
type Discovery struct {
	*oidc.Provider
	// Keys is the URL of the key set.
	Keys string
}

// Discover fetches the document without following redirects.
func Discover(ctx context.Context, client *http.Client, issuer string) (*Discovery, error) {
	bounded := WithoutRedirects(client)
	bounded.Transport = boundedTransport{bounded.Transport}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, bounded), issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	own, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"jwks_uri": document.Keys,
		"token_endpoint": provider.Endpoint().TokenURL} {
		location, err := url.Parse(text)
		if name == "token_endpoint" && text == "" {
			continue // the caller may need only keys
		}
		if err != nil || !address.IsConfidential(location) || own.Scheme == "https" && location.Scheme != "https" {
			return nil, fmt.Errorf("issuer %s: its %s %q is not an https URL", issuer, name, text)
		}
	}
	return &Discovery{provider, document.Keys}, nil
}

// boundedTransport refuses responses larger than maxDocument.
type boundedTransport struct{ inner http.RoundTripper }

func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("%s is larger than %d bytes", r.URL.Redacted(), maxDocument)
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
