package credential

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/strictjson"
)

const (
	// googleTokenURL is Google's token endpoint unless the key names another one.
	googleTokenURL = "https://oauth2.googleapis.com/token"
	// assertionLife is the validity of an assertion. Google accepts at most an hour.
	assertionLife = time.Hour
	// largestSkew is a clock difference that Google tolerates.
	largestSkew = time.Minute
)

// serviceAccount gets access tokens with signed assertions. It keeps them in memory only, because a new one costs one
// request.
type serviceAccount struct {
	broker *Broker
	id     id
	spec   Spec
	secret *secret.Secret
	flight singleflight.Group

	mu    sync.Mutex // guards token
	token *record
}

func (s *serviceAccount) credential(ctx context.Context) (*broker.Credential, error) {
	token, fresh := s.cached()
	if fresh {
		return s.header(token), nil
	}
	result := s.flight.DoChan("", func() (any, error) {
		if token, fresh := s.cached(); fresh { // another goroutine has fetched it meanwhile
			return token, nil
		}
		return s.fetch()
	})
	select {
	case r := <-result:
		if r.Err == nil {
			return s.header(r.Val.(*record)), nil
		}
		if token != nil && token.usable(time.Now()) {
			return s.header(token), nil
		}
		return nil, unusablef(r.Err, "the credential %s provides no token: see hako connect status and hako's log",
			s.id)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cached returns the current token, if there is one. It is fresh until it is due for renewal.
func (s *serviceAccount) cached() (token *record, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.token != nil && !s.token.due(time.Now())
}

func (s *serviceAccount) header(token *record) *broker.Credential {
	h := header(s.spec, token.AccessToken, token.Connection)
	h.Public = token.Public
	return h
}

// renew drops a refused token unless it is new.
func (s *serviceAccount) renew(ctx context.Context, refused *broker.Credential, status int,
	_ []byte) (*broker.Credential, error) {
	if status != http.StatusUnauthorized {
		return nil, nil
	}
	s.mu.Lock()
	if s.token != nil && s.header(s.token).Value == refused.Value && time.Since(s.token.Issued) >= pause {
		s.token = nil
	}
	s.mu.Unlock()
	c, err := s.credential(ctx)
	if err != nil || c.Value == refused.Value {
		return nil, err
	}
	return c, nil
}

// fetch requests a token with a signed assertion (RFC 7523, section 2.1).
func (s *serviceAccount) fetch() (*record, error) {
	if err := s.broker.begin(); err != nil {
		return nil, err
	}
	defer s.broker.working.Done()
	ctx, cancel := context.WithTimeout(s.broker.ending, tokenTime)
	defer cancel()
	key, err := s.readKey(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	assertion, err := key.sign(s.spec.Scopes, s.spec.Subject, now)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	reply, err := s.broker.ask(ctx, key.TokenURI, form)
	s.broker.observe(s.id, err)
	if err != nil {
		return nil, explainSkew(err)
	}
	token := &record{
		AccessToken: reply.AccessToken, Issued: reply.issued(now), Expires: reply.expires(now),
		Connection: accountOf(key.ClientEmail),
		Public:     map[string]string{"client_email": key.ClientEmail},
	}
	s.mu.Lock()
	s.token = token
	s.mu.Unlock()
	return token, nil
}

// explainSkew adds a clock difference to an error: Google does not name it when it refuses assertions from the past or
// the future.
func explainSkew(err error) error {
	var own *tokenError
	if !errors.As(err, &own) || own.outcome != Revoked || own.skew.Abs() < largestSkew {
		return err
	}
	return fmt.Errorf("%w; this machine's clock is off by %v: set it", err, own.skew.Abs().Round(time.Minute))
}

func (s *serviceAccount) status(ctx context.Context) Status {
	status := Status{State: Ready}
	if len(s.spec.Key.Command) > 0 {
		return status
	}
	key, err := s.readKey(ctx)
	if err != nil {
		status.fail(err.Error())
		return status
	}
	status.Public = map[string]string{"client_email": key.ClientEmail}
	return status
}

// accountKey is the JSON key file of Google.
type accountKey struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	TokenURI     string `json:"token_uri"`

	private *rsa.PrivateKey
}

// readKey reads the key, again if its source may have changed.
func (s *serviceAccount) readKey(ctx context.Context) (*accountKey, error) {
	text, err := s.secret.Read(ctx)
	if err != nil {
		return nil, err
	}
	key := new(accountKey)
	if err := strictjson.Unmarshal([]byte(text), key); err != nil {
		return nil, fmt.Errorf("%v is not a JSON key file: %w", s.spec.Key, err)
	}
	if key.Type != "service_account" || key.ClientEmail == "" {
		return nil, fmt.Errorf("%v is not a service account key: its type is %.40q", s.spec.Key, key.Type)
	}
	key.TokenURI = cmp.Or(s.spec.TokenURL, key.TokenURI, googleTokenURL)
	if err := (Spec{TokenURL: key.TokenURI}).checkAddresses(); err != nil {
		return nil, err
	}
	key.private, err = parsePrivate(key.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("the private_key in %v: %w", s.spec.Key, err)
	}
	return key, nil
}

func parsePrivate(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not PKCS #8")
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an RSA key")
	}
	return private, nil
}

// sign returns an assertion: a JSON Web Token with RS256 (RFC 7515, RFC 7519). It is slightly backdated, in case this
// machine's clock is ahead.
func (k *accountKey) sign(scopes []string, subject string, now time.Time) (string, error) {
	now = now.Add(-largestSkew / 2)
	header := map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.PrivateKeyID}
	claims := map[string]any{
		"iss": k.ClientEmail, "scope": strings.Join(scopes, " "), "aud": k.TokenURI, "iat": now.Unix(),
		"exp": now.Add(assertionLife).Unix(),
	}
	if subject != "" {
		claims["sub"] = subject
	}
	var parts []string
	for _, part := range []any{header, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, sum[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
