package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/claim"
	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/internal/strictjson"
)

// Introspection asks an endpoint about tokens that are no JWTs (RFC 7662).
type Introspection struct {
	// URL is the endpoint, an https URL (http on this machine).
	URL string
	// ClientID and ClientSecret identify hako there.
	ClientID     string
	ClientSecret secret.Source
	// Issuer is the issuer of the tokens. Empty means URL.
	Issuer string
}

const (
	// activeTime and inactiveTime are the lifetimes of cached answers, at most until the token expires. A token that
	// is revoked stays valid for activeTime.
	activeTime   = 30 * time.Second
	inactiveTime = 10 * time.Second
	maxAnswers   = 4096
	// maxAnswer limits a response, in bytes, introspectionTimeout its time.
	maxAnswer            = 64 << 10
	introspectionTimeout = 5 * time.Second
	// maxIntrospections limits the concurrent requests.
	maxIntrospections = 16
	// After a failure there are no requests for failurePause, or for what Retry-After says, up to maxPause.
	failurePause = time.Second
	maxPause     = time.Minute
)

// introspector asks the endpoint and caches its answers. It is safe for concurrent use.
type introspector struct {
	options Introspection
	client  *http.Client
	now     func() time.Time
	logger  *slog.Logger
	flights singleflight.Group
	slots   chan struct{}

	mu      sync.Mutex // guards the fields below
	answers map[[sha256.Size]byte]answer
	paused  time.Time
}

// answer is a cached introspection result. claims is nil if it is not valid.
type answer struct {
	claims map[string]any
	until  time.Time
}

func newIntrospector(
	options *Introspection, client *http.Client, now func() time.Time, logger *slog.Logger,
) (*introspector, error) {
	at, err := url.Parse(options.URL)
	if err != nil || !address.IsConfidential(at) {
		return nil, fmt.Errorf("mcp server: OAuth introspection: %q is not an https URL", options.URL)
	}
	if options.ClientID == "" || options.ClientSecret.IsZero() {
		return nil, errors.New(
			"mcp server: OAuth introspection needs the client ID and the secret of hako at the endpoint")
	}
	i := &introspector{options: *options, client: issuer.WithoutRedirects(client), now: now, logger: logger,
		slots: make(chan struct{}, maxIntrospections), answers: map[[sha256.Size]byte]answer{}}
	i.client.Timeout = introspectionTimeout
	if i.options.Issuer == "" {
		i.options.Issuer = options.URL
	}
	return i, nil
}

// claims returns the claims of an active token. The error is errInvalidToken or ErrUnavailable.
func (i *introspector) claims(ctx context.Context, token string) (map[string]any, error) {
	if len(token) > issuer.MaxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errInvalidToken
	}
	key := sha256.Sum256([]byte(token))
	known, ok, paused := i.known(key)
	if !ok {
		if paused {
			return nil, ErrUnavailable
		}
		// Other requests share the answer, so it must not be canceled with the first one.
		result := i.flights.DoChan(string(key[:]), func() (any, error) { return i.ask(token, key) })
		select {
		case r := <-result:
			if r.Err != nil {
				return nil, ErrUnavailable
			}
			known = r.Val.(answer)
		case <-ctx.Done():
			return nil, ErrUnavailable
		}
	}
	if known.claims == nil {
		return nil, errInvalidToken
	}
	return known.claims, nil
}

// known returns a cached answer, and whether requests are paused.
func (i *introspector) known(key [sha256.Size]byte) (known answer, ok, paused bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok = i.answers[key]
	now := i.now()
	return known, ok && now.Before(known.until), now.Before(i.paused)
}

// ask asks the endpoint about a token, unless an earlier request has got the answer since its sender looked.
func (i *introspector) ask(token string, key [sha256.Size]byte) (answer, error) {
	if known, ok, _ := i.known(key); ok {
		return known, nil
	}
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	default:
		return answer{}, ErrUnavailable
	}
	claims, pause, err := i.post(token)
	now := i.now()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		if !now.Before(i.paused) {
			i.logger.Warn("the introspection endpoint cannot be used", "err", err)
		}
		i.paused = now.Add(pause)
		return answer{}, err
	}
	got := answer{claims: claims, until: now.Add(activeTime)}
	if active, _ := claims["active"].(bool); !active {
		got = answer{until: now.Add(inactiveTime)}
	} else if end, ok := unixTime(claims["exp"]); ok && !end.IsZero() && end.Before(got.until) {
		got.until = end
	}
	if len(i.answers) >= maxAnswers {
		clear(i.answers)
	}
	i.answers[key] = got
	return got, nil
}

// post asks the endpoint. With an error it returns how long to wait before the next request.
func (i *introspector) post(token string) (map[string]any, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), introspectionTimeout)
	defer cancel()
	secret, err := i.options.ClientSecret.Read(ctx)
	if err != nil {
		return nil, failurePause, err
	}
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.options.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, failurePause, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.SetBasicAuth(url.QueryEscape(i.options.ClientID), url.QueryEscape(secret)) // RFC 6749, section 2.3.1
	response, err := i.client.Do(request)
	if err != nil {
		return nil, failurePause, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, pauseOf(response.Header), fmt.Errorf("the status is %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, failurePause, err
	}
	var claims map[string]any
	if len(body) > maxAnswer {
		return nil, failurePause, fmt.Errorf("the response has more than %d bytes", maxAnswer)
	}
	if strictjson.Unmarshal(body, &claims) != nil || claims == nil {
		return nil, failurePause, errors.New("the response is not a JSON object")
	}
	return claims, 0, nil
}

func pauseOf(header http.Header) time.Duration {
	return min(max(retry.After(header, time.Now()), failurePause), maxPause)
}

// introspect verifies an opaque token. Unlike a JWT, nothing says for whom it is but the endpoint's answer, so that has
// to name hako among the audiences.
func (v *oauthVerifier) introspect(ctx context.Context, token string) (*Identity, error) {
	claims, err := v.introspection.claims(ctx, token)
	if err != nil {
		return nil, err
	}
	now, by := v.now(), v.introspection.options.Issuer
	expires, endOK := unixTime(claims["exp"])
	notBefore, beginOK := unixTime(claims["nbf"])
	issued, issuedOK := unixTime(claims["iat"])
	named, hasIssuer := claims["iss"]
	kind, hasKind := claims["token_type"].(string)
	if !endOK || !beginOK || !issuedOK || !expires.IsZero() && !now.Before(expires) ||
		notBefore.After(now.Add(clockSkew)) || issued.After(now.Add(clockSkew)) ||
		!claim.Has(claims["aud"], v.options.Audience) ||
		hasIssuer && by != v.introspection.options.URL && named != by ||
		hasKind && !strings.EqualFold(kind, "Bearer") && !strings.EqualFold(kind, "access_token") ||
		issuer.CheckAccessToken(claims) != nil {
		return nil, errInvalidToken
	}
	return v.person(claims, by, expires)
}

// unixTime reads the time of a claim, which is zero without a claim. It reports false for a claim that is not a time: a
// token must not live longer because its end cannot be read.
func unixTime(claim any) (time.Time, bool) {
	if claim == nil {
		return time.Time{}, true
	}
	seconds, ok := claim.(float64)
	if !ok || math.Abs(seconds) > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
