// Package issuer verifies what the issuers of tokens sign: it fetches their public keys, and reads the headers of their tokens.
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

	"github.com/hako-run/hako/internal/strictjson"
)

const (
	// MaxAge is for how long keys are trusted after they were fetched. A key that its issuer withdraws stops counting within
	// that time, and so do all of its keys while the issuer cannot be reached.
	MaxAge = 5 * time.Minute
	// renewAge is the age from which one request at a time fetches the keys again, while the others still use the known ones.
	renewAge = time.Minute
	// RetryInterval is how often an issuer is asked at most. Otherwise anybody could make this server send it a request for
	// every made-up token.
	RetryInterval = 10 * time.Second

	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20
	// minModulus is the smallest RSA key, in bits (RFC 7518, section 3.3).
	minModulus = 2048
)

// Algorithms are those that tokens may be signed with: asymmetric ones only, or knowing the public key would be enough to sign.
var Algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

var algorithms = func() (list []jose.SignatureAlgorithm) {
	for _, name := range Algorithms {
		list = append(list, jose.SignatureAlgorithm(name))
	}
	return list
}()

// ErrUnavailable says that there are no keys that are young enough to be trusted.
var ErrUnavailable = errors.New("the issuer's keys are not available")

// errSignature says that none of the issuer's keys made the signature.
var errSignature = errors.New("the signature is of none of the issuer's keys")

// Options configures Keys. URL and Location are needed.
type Options struct {
	// URL names the issuer in the log.
	URL string
	// Location returns where the key set is. It is called before each fetch.
	Location func(context.Context) (string, error)
	// Client fetches the key set; see NewClient. No redirect is followed.
	Client *http.Client
	// Now is the server's clock. Nil means time.Now.
	Now func() time.Time
	// Logger returns where failed fetches are logged; it may return nil. Nil logs nothing.
	Logger func() *slog.Logger
}

// Keys are the signing keys of one issuer (RFC 7517). They are fetched when the first token comes, and again before they are
// older than MaxAge. Keys is safe for concurrent use.
type Keys struct {
	options Options
	// fetching is held while the keys are fetched, so that the issuer is asked once for all who wait.
	fetching sync.Mutex
	state    atomic.Pointer[state]
}

var _ oidc.KeySet = (*Keys)(nil)

// state is what the last fetches brought.
type state struct {
	keys []jose.JSONWebKey
	// fetched is when keys came, and tried when they were last asked for; zero for never.
	fetched, tried time.Time
	// err is why the last fetch failed.
	err error
}

// NewKeys returns the keys of an issuer. It fetches nothing yet.
func NewKeys(options Options) *Keys {
	k := &Keys{options: options}
	if k.options.Now == nil {
		k.options.Now = time.Now
	}
	k.options.Client = WithoutRedirects(options.Client)
	k.state.Store(new(state))
	return k
}

// WithoutRedirects returns a copy of client that returns redirects as they are: what it sends, and whom it trusts, is for the
// configured address alone. A client without a transport gets that of NewClient without a proxy.
func WithoutRedirects(client *http.Client) *http.Client {
	other := *client
	if other.Transport == nil {
		other.Transport = NewClient(nil).Transport
	}
	other.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &other
}

// VerifySignature returns the payload of a JWT that one of the keys has signed. It fails with ErrUnavailable if there are no
// keys that may be trusted.
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

// since is how long ago t was, by the server's clock. What never was, or is yet to come because the clock was set back, was
// longer ago than anything counts.
func (k *Keys) since(t time.Time) time.Duration {
	if age := k.options.Now().Sub(t); !t.IsZero() && age >= 0 {
		return age
	}
	return 1<<63 - 1
}

// fetch replaces what was known and returns what is known now. Where somebody else is fetching already, it waits for that, or
// without wait returns what was known.
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
	// Others wait for the answer too, so it does not end with the request that happened to come first.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	next := &state{keys: known.keys, fetched: known.fetched}
	begun := k.options.Now()
	keys, err := k.load(ctx)
	next.tried = k.options.Now()
	if next.err = err; err == nil {
		next.keys, next.fetched = keys, begun
	} else if logger := k.logger(); logger != nil {
		logger.Warn("the keys of an issuer could not be fetched: its tokens are refused when the known keys are too old",
			"issuer", k.options.URL, "err", err, "trusted", max(0, MaxAge-k.since(known.fetched)).Round(time.Second), "limit", MaxAge)
	}
	k.state.Store(next)
	return next
}

func (k *Keys) logger() *slog.Logger {
	if k.options.Logger == nil {
		return nil
	}
	return k.options.Logger()
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

// parseKeys reads a key set. Keys that tokens must not be signed with, or that are of kinds not known here, are left out.
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
	// Keys is where the key set is.
	Keys string
}

// Discover fetches the document, without following redirects. Plain http is for issuers on this machine: isSecure decides.
func Discover(ctx context.Context, client *http.Client, issuer string, isSecure func(*url.URL) bool) (*Discovery, error) {
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
	for name, text := range map[string]string{"jwks_uri": document.Keys, "token_endpoint": provider.Endpoint().TokenURL} {
		location, err := url.Parse(text)
		if name == "token_endpoint" && text == "" {
			continue // keys alone may be wanted
		}
		if err != nil || !isSecure(location) || own.Scheme == "https" && location.Scheme != "https" {
			return nil, fmt.Errorf("issuer %s: its %s %q is no https URL", issuer, name, text)
		}
	}
	return &Discovery{provider, document.Keys}, nil
}

// boundedTransport refuses answers that are larger than maxDocument.
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
