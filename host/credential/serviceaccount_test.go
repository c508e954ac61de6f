package credential

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
)

var privateKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// keyFile writes the key file of a service account. edits replace its members.
func keyFile(t *testing.T, edits map[string]any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(privateKey())
	if err != nil {
		t.Fatal(err)
	}
	key := map[string]any{
		"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key_id": "key-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   "http://127.0.0.1:1/token",
	}
	for name, value := range edits {
		key[name] = value
	}
	data, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	write(t, path, string(data))
	return path
}

// google answers like Google's token endpoint and checks the assertion.
func google(t *testing.T, wantSubject string) func(http.ResponseWriter, url.Values) bool {
	issued := 0
	return func(w http.ResponseWriter, form url.Values) bool {
		parts := strings.Split(form.Get("assertion"), ".")
		if len(parts) != 3 || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Fatalf("sent %v", form)
		}
		var header, claims map[string]any
		for i, v := range []any{&header, &claims} {
			text, err := base64.RawURLEncoding.DecodeString(parts[i])
			if err != nil || json.Unmarshal(text, v) != nil {
				t.Fatal(err)
			}
		}
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err != nil || rsa.VerifyPKCS1v15(&privateKey().PublicKey, crypto.SHA256, sum[:], signature) != nil {
			t.Error("the signature is wrong")
		}
		subject, _ := claims["sub"].(string)
		age, life := float64(time.Now().Unix())-claims["iat"].(float64), claims["exp"].(float64)-claims["iat"].(float64)
		if fmt.Sprint(header) != "map[alg:RS256 kid:key-1 typ:JWT]" ||
			claims["iss"] != "robot@project.iam.gserviceaccount.com" ||
			claims["scope"] != "https://www.googleapis.com/auth/spreadsheets" ||
			claims["aud"] != "http://127.0.0.1:1/token" ||
			subject != wantSubject || age < 0 || age > 60 || life > 3600 || life < 3000 {
			t.Errorf("header %v, claims %v", header, claims)
		}
		issued++
		reply(w, 200, map[string]any{"access_token": fmt.Sprintf("google-%04d", issued),
			"expires_in": 3599, "token_type": "Bearer"})
		return true
	}
}

func TestServiceAccount(t *testing.T) {
	t.Parallel()
	path := keyFile(t, nil)
	synctest.Test(t, func(t *testing.T) {
		s := newAuthServer(t)
		s.before = google(t, "aki@example.com")
		b := newBroker(t, Options{Credentials: map[string]Spec{"freee": {Provider: GoogleServiceAccount,
			Key: secret.Source{File: path}, Subject: "aki@example.com"}}})
		b.client.Transport = s
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				if got := token(t, b, []string{"", "acme"}[i%2]); got != "google-0001" {
					t.Errorf("got %s", got)
				}
			})
		}
		callers.Wait()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{44 * time.Minute, "google-0001"}, {2 * time.Minute, "google-0002"}, {24 * time.Hour, "google-0003"}} {
			time.Sleep(step.after)
			if got := token(t, b, ""); got != step.want {
				t.Errorf("%v later: %s, want %s", step.after, got, step.want)
			}
		}
		old := &broker.Credential{Value: "Bearer google-0003"}
		if c, err := b.Renew(t.Context(), "", "freee", old, 401, nil); c != nil || err != nil {
			t.Errorf("a new token is refused: %v, %v", c, err)
		}
		time.Sleep(pause)
		if c, err := b.Renew(t.Context(), "", "freee", old, 401, nil); err != nil || c == nil ||
			c.Value != "Bearer google-0004" {
			t.Errorf("an old token is refused: %v, %v", c, err)
		}
		if status := only(t, b); status.State != Ready ||
			status.Public["client_email"] != "robot@project.iam.gserviceaccount.com" {
			t.Errorf("status %+v", status)
		}
		b.Close()
	})
}

func TestServiceAccountWithoutToken(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edits map[string]any
		skew  time.Duration
		want  string
	}{
		"clock is wrong": {nil, 2 * time.Hour,
			"(Invalid JWT: short-lived); this machine's clock is off by 2h0m0s: set it"},
		"clock is right": {nil, 0, "invalid_grant (Invalid JWT: short-lived)"},
		"other key": {map[string]any{"type": "authorized_user"}, 0,
			`not a service account key: its type is "authorized_user"`},
		"no PEM": {map[string]any{"private_key": "abc"}, 0, "it is not PEM"},
		"not PKCS #8": {map[string]any{"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE " +
			"KEY-----\n"}, 0, "it is not PKCS #8"},
		"in the clear":      {map[string]any{"token_uri": "http://evil.example/token"}, 0, "not an https URL"},
		"not an account":    {map[string]any{"client_email": 5}, 0, "is not a JSON key file"},
		"without an e-mail": {map[string]any{"client_email": ""}, 0, "not a service account key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAuthServer(t)
			s.before = func(w http.ResponseWriter, form url.Values) bool {
				w.Header().Set("Date", time.Now().Add(test.skew).UTC().Format(http.TimeFormat))
				reply(w, 400, map[string]any{"error": "invalid_grant", "error_description": "Invalid JWT: short-lived"})
				return true
			}
			path := keyFile(t, test.edits)
			b := newBroker(t, Options{Credentials: map[string]Spec{"freee": {Provider: GoogleServiceAccount,
				Key: secret.Source{File: path}}}})
			b.client.Transport = s
			got := token(t, b, "")
			if !strings.HasPrefix(got, "the credential freee provides no token") || !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if data, err := os.ReadFile(path); err != nil || strings.Contains(got,
				string(data[len(data)/2:len(data)/2+20])) {
				t.Errorf("the key is in %s", got)
			}
		})
	}
}
