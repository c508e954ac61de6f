package issuer_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hako-run/hako/host/frontend/issuer"
)

// world is an issuer without a network and the clock of its client.
type world struct {
	mu     sync.Mutex
	now    time.Time
	asked  int
	answer func() (int, string)
	log    strings.Builder
	keys   *issuer.Keys
}

func newWorld(location func(context.Context) (string, error)) *world {
	w := &world{now: time.Unix(1_800_000_000, 0)}
	if location == nil {
		location = func(context.Context) (string, error) { return "https://issuer.example.com/keys", nil }
	}
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.keys = issuer.NewKeys(issuer.Options{URL: "https://issuer.example.com", Location: location,
		Client: &http.Client{Transport: w},
		Now:    w.clock, Logger: logger})
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	status, body := w.answer()
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Location", "https://evil.example.com/keys")
	recorder.WriteHeader(status)
	recorder.WriteString(body)
	response := recorder.Result()
	response.Request = r
	return response, nil
}

func publish(keys ...jose.JSONWebKey) func() (int, string) {
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		panic(err)
	}
	return func() (int, string) { return http.StatusOK, string(body) }
}

func down() (int, string) { return 0, "" }

var key = sync.OnceValue(func() *rsa.PrivateKey { return newKey(2048) })

func newKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

func public(id string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key().Public(), KeyID: id, Use: "sig", Algorithm: "RS256"}
}

func sign(t *testing.T, key any, algorithm jose.SignatureAlgorithm, header map[jose.HeaderKey]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key},
		&jose.SignerOptions{ExtraHeaders: header})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{"sub":"aki"}`))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) verify(t *testing.T, token string) error {
	t.Helper()
	_, err := w.keys.VerifySignature(t.Context(), token)
	return err
}

// TestHostileTokensOfOldKeys: a key is valid as long as its issuer publishes it.
func TestHostileTokensOfOldKeys(t *testing.T) {
	t.Parallel()
	good := func(t *testing.T) string {
		return sign(t, key(), jose.RS256, map[jose.HeaderKey]any{"kid": "one"})
	}
	begin := func(t *testing.T) *world {
		w := newWorld(nil)
		w.answer = publish(public("one"))
		if err := w.verify(t, good(t)); err != nil || w.asked != 1 {
			t.Fatalf("%v after %d requests", err, w.asked)
		}
		return w
	}
	t.Run("withdrawn, found before the age", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.answer = publish()
		w.pass(61 * time.Second)
		if err := w.verify(t, good(t)); err == nil || errors.Is(err, issuer.ErrUnavailable) {
			t.Errorf("a withdrawn key: %v", err)
		}
	})
	t.Run("withdrawn, no request in between", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.answer = publish()
		w.pass(issuer.MaxAge + time.Second)
		if err := w.verify(t, good(t)); err == nil || errors.Is(err, issuer.ErrUnavailable) {
			t.Errorf("a withdrawn key: %v", err)
		}
	})
	t.Run("the issuer is away", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.answer = down
		w.pass(issuer.MaxAge)
		if err := w.verify(t, good(t)); err != nil {
			t.Errorf("at the age: %v", err)
		}
		w.pass(time.Millisecond)
		if err := w.verify(t, good(t)); !errors.Is(err, issuer.ErrUnavailable) {
			t.Errorf("over the age: %v", err)
		}
		if log := w.log.String(); strings.Count(log, "could not be fetched") != 1 ||
			!strings.Contains(log, "connection refused") {
			t.Errorf("the log has\n%s", log)
		}
		w.answer = publish(public("one"))
		w.pass(issuer.RetryInterval)
		if err := w.verify(t, good(t)); err != nil {
			t.Errorf("back again: %v", err)
		}
	})
	t.Run("the issuer answers with errors", func(t *testing.T) {
		t.Parallel()
		for _, status := range []int{201, 204, 302, 307, 308, 401, 404, 500, 503} {
			w := begin(t)
			_, body := publish(public("one"))()
			w.answer = func() (int, string) { return status, body }
			w.pass(issuer.MaxAge + 1)
			if err := w.verify(t, good(t)); !errors.Is(err, issuer.ErrUnavailable) || w.asked != 2 {
				t.Errorf("%d: %v after %d requests", status, err, w.asked)
			}
		}
	})
	t.Run("the issuer publishes what is no key set", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{"", "{", "[]", `"keys"`, strings.Repeat(" ", 1<<20) + "{}"} {
			w := begin(t)
			w.answer = func() (int, string) { return http.StatusOK, body }
			w.pass(issuer.MaxAge + 1)
			if err := w.verify(t, good(t)); !errors.Is(err, issuer.ErrUnavailable) {
				t.Errorf("%.20q: %v", body, err)
			}
		}
	})
	t.Run("the clock is set back", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.answer = down
		w.pass(-time.Hour)
		if err := w.verify(t, good(t)); !errors.Is(err, issuer.ErrUnavailable) {
			t.Errorf("keys of the future: %v", err)
		}
	})
	t.Run("the set moved", func(t *testing.T) {
		t.Parallel()
		places := []string{"https://issuer.example.com/old", "https://issuer.example.com/new"}
		w := newWorld(func(context.Context) (string, error) {
			place := places[0]
			places = places[1:]
			return place, nil
		})
		w.answer = publish(public("one"))
		for range 2 {
			if err := w.verify(t, good(t)); err != nil {
				t.Error(err)
			}
			w.pass(issuer.MaxAge + 1)
		}
		if len(places) != 0 {
			t.Errorf("never asked at %v", places)
		}
	})
	t.Run("a flood of unknown keys", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		unknown := sign(t, key(), jose.RS256, map[jose.HeaderKey]any{"kid": "../../etc/passwd' OR 1=1"})
		var senders sync.WaitGroup
		for range 64 {
			senders.Go(func() {
				if err := w.verify(t, unknown); err == nil {
					t.Error("an unknown key")
				}
			})
		}
		senders.Wait()
		w.pass(issuer.RetryInterval)
		for range 64 {
			senders.Go(func() { _ = w.verify(t, unknown) })
		}
		senders.Wait()
		if w.asked != 2 {
			t.Errorf("the issuer was asked %d times, want twice", w.asked)
		}
	})
	t.Run("a flood while the issuer is away", func(t *testing.T) {
		t.Parallel()
		w := newWorld(nil)
		w.answer = down
		for range 100 {
			if err := w.verify(t, good(t)); !errors.Is(err, issuer.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if w.asked != 1 {
			t.Errorf("the issuer was asked %d times, want once", w.asked)
		}
	})
}

// TestHostileTokensOfOtherKeys: other keys in a key set than signature keys verify nothing.
func TestHostileTokensOfOtherKeys(t *testing.T) {
	t.Parallel()
	small := newKey(1024)
	secret := []byte("0123456789abcdef0123456789abcdef")
	one := map[jose.HeaderKey]any{"kid": "one"}
	for name, test := range map[string]struct {
		published jose.JSONWebKey
		token     string
	}{
		"for encryption": {jose.JSONWebKey{Key: key().Public(), KeyID: "one", Use: "enc"},
			sign(t, key(), jose.RS256, one)},
		"for another algorithm": {jose.JSONWebKey{Key: key().Public(), KeyID: "one", Algorithm: "PS256"},
			sign(t, key(), jose.RS256, one)},
		"of another name": {jose.JSONWebKey{Key: key().Public(), KeyID: "two"},
			sign(t, key(), jose.RS256, one)},
		"private, by mistake": {jose.JSONWebKey{Key: key(), KeyID: "one"}, sign(t, key(), jose.RS256, one)},
		"symmetric":           {jose.JSONWebKey{Key: secret, KeyID: "one"}, sign(t, secret, jose.HS256, one)},
		"too small": {jose.JSONWebKey{Key: small.Public(), KeyID: "one"},
			sign(t, small, jose.RS256, one)},
		"in the header": {jose.JSONWebKey{Key: newKey(2048).Public(), KeyID: "one"},
			sign(t, key(), jose.RS256, map[jose.HeaderKey]any{"jwk": public("one")})},
		"at the header's address": {jose.JSONWebKey{Key: newKey(2048).Public(), KeyID: "one"},
			sign(t, key(), jose.RS256, map[jose.HeaderKey]any{"jku": "https://evil.example.com",
				"x5u": "https://evil.example.com"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(nil)
			w.answer = publish(test.published)
			if err := w.verify(t, test.token); err == nil {
				t.Error("it counts")
			}
			if w.asked > 1 {
				t.Errorf("asked %d times", w.asked)
			}
		})
	}
	t.Run("beside one that is not known here", func(t *testing.T) {
		t.Parallel()
		w := newWorld(nil)
		_, body := publish(public("one"))()
		w.answer = func() (int, string) {
			return http.StatusOK, strings.Replace(body, `[`, `[{"kty":"AKP","kid":"quantum"},{"kty":"RSA"},7,`, 1)
		}
		if err := w.verify(t, sign(t, key(), jose.RS256, one)); err != nil {
			t.Error(err)
		}
	})
}
