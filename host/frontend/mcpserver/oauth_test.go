package mcpserver

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store/drivers"
)

const (
	issuerURL   = "https://issuer.example.com"
	resourceURL = "https://hako.example.com/mcp"
)

// authority is a fake authorization server that is reached without a network.
type authority struct {
	oidctest.Server
	asked atomic.Int64
	down  atomic.Bool
}

var rsaKeys = [2]*rsa.PrivateKey{newKey(), newKey()}

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func newAuthority() *authority {
	a := new(authority)
	a.publish("first", rsaKeys[0])
	a.SetIssuer(issuerURL)
	return a
}

func (a *authority) publish(id string, key *rsa.PrivateKey) {
	a.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: id, Algorithm: oidc.RS256}}
}

// RoundTrip makes the authority a client's transport.
func (a *authority) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	if a.down.Load() {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

func (a *authority) server(t *testing.T, calls Pipeline, change func(*auth.Options)) http.Handler {
	t.Helper()
	options := auth.Options{OAuth: &auth.OAuth{
		Resource: resourceURL, Issuers: []auth.Issuer{{URL: issuerURL}}, Client: &http.Client{Transport: a},
	}}
	if change != nil {
		change(&options)
	}
	return newServer(t, offer(t, serveEverything, "x"), calls,
		&Options{Auth: newAuth(t, options), Hosts: []string{"hako.example.com"}}).Handler()
}

func claims(change map[string]any) string {
	all := map[string]any{
		"iss": issuerURL, "aud": resourceURL, "sub": "aki", "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix(),
	}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func sign(change map[string]any) string {
	return oidctest.SignIDToken(rsaKeys[0], "first", oidc.RS256, claims(change))
}

// forge makes a JWT by hand.
func forge(header, claims string, signature func(input string) []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	input := encode([]byte(header)) + "." + encode([]byte(claims))
	return input + "." + encode(signature(input))
}

// confuse signs with the public key as if it were a shared secret.
func confuse(input string) []byte {
	der, err := x509.MarshalPKIXPublicKey(rsaKeys[0].Public())
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(input))
	return mac.Sum(nil)
}

func withToken(token string) *http.Request {
	return post(withoutSessions, message(withoutSessions, 1, "tools/call", `{"name":"x"}`), "Authorization",
		"Bearer "+token)
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	none := func(string) []byte { return nil }
	tests := map[string]struct {
		token  string
		status int
	}{
		"valid": {sign(nil), http.StatusOK},
		"several audiences": {sign(map[string]any{"aud": []string{"https://other.example.com", resourceURL}}),
			http.StatusOK},
		"another audience":      {sign(map[string]any{"aud": "https://other.example.com"}), http.StatusUnauthorized},
		"the resource's origin": {sign(map[string]any{"aud": "https://hako.example.com"}), http.StatusUnauthorized},
		"no audience":           {sign(map[string]any{"aud": nil}), http.StatusUnauthorized},
		"expired": {sign(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
			http.StatusUnauthorized},
		"without expiry": {sign(map[string]any{"exp": nil}), http.StatusUnauthorized},
		"not valid yet": {sign(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
			http.StatusUnauthorized},
		"another issuer":          {sign(map[string]any{"iss": "https://evil.example.com"}), http.StatusUnauthorized},
		"issuer with slash":       {sign(map[string]any{"iss": issuerURL + "/"}), http.StatusUnauthorized},
		"no subject":              {sign(map[string]any{"sub": nil}), http.StatusUnauthorized},
		"subject of another type": {sign(map[string]any{"sub": 7}), http.StatusUnauthorized},
		"another key": {oidctest.SignIDToken(rsaKeys[1], "first", oidc.RS256, claims(nil)),
			http.StatusUnauthorized},
		"unknown key": {oidctest.SignIDToken(rsaKeys[1], "second", oidc.RS256, claims(nil)),
			http.StatusUnauthorized},
		"algorithm none": {forge(`{"alg":"none"}`, claims(nil), none), http.StatusUnauthorized},
		"algorithm None": {forge(`{"alg":"None","kid":"first"}`, claims(nil), none), http.StatusUnauthorized},
		"HS256 confusion": {forge(`{"alg":"HS256","kid":"first"}`, claims(nil), confuse),
			http.StatusUnauthorized},
		"RS256 without signature": {forge(`{"alg":"RS256","kid":"first"}`, claims(nil), none), http.StatusUnauthorized},
		"changed claims": {swapClaims(sign(nil), claims(map[string]any{"sub": "root"})),
			http.StatusUnauthorized},
		"no JWT":      {"opaque", http.StatusUnauthorized},
		"empty parts": {"..", http.StatusUnauthorized},
		"no JSON":     {forge("x", "y", none), http.StatusUnauthorized},
	}
	h := newAuthority().server(t, nil, nil)
	challenge := `Bearer error="invalid_token", error_description="The token is not valid here, or has expired.", ` +
		`resource_metadata="https://hako.example.com/.well-known/oauth-protected-resource/mcp"`
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := do(h, withToken(test.token))
			if w.Code != test.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, test.status)
			}
			if got := w.Header().Get("WWW-Authenticate"); w.Code == http.StatusUnauthorized && got != challenge {
				t.Errorf("WWW-Authenticate: %s", got)
			}
		})
	}
}

// swapClaims puts other claims under a token's signature.
func swapClaims(token, claims string) string {
	parts := strings.Split(token, ".")
	return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + parts[2]
}

func TestOAuthIdentity(t *testing.T) {
	t.Parallel()
	seen := make(chan pipeline.Caller, 1)
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		seen <- call.Caller
		return ok(text("done"))
	})
	h := newAuthority().server(t, calls, func(o *auth.Options) {
		o.OAuth.UserClaim, o.OAuth.TenantClaim = "email", "org"
	})
	if w := do(h, withToken(sign(map[string]any{"email": "aki@example.com", "org": "acme"}))); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if got := <-seen; got.User != "aki@example.com" || got.Tenant != "acme" {
		t.Errorf("caller: %+v", got)
	}
	if w := do(h, withToken(sign(map[string]any{"email": "aki@example.com"}))); w.Code != http.StatusUnauthorized {
		t.Errorf("without a tenant: %d", w.Code)
	}
}

// TestBlockedUser: the tokens of a blocked user are refused at once, those of others and of another issuer are not.
func TestBlockedUser(t *testing.T) {
	t.Parallel()
	s, err := drivers.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	issued, err := bearer.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) { return ok(text("done")) })
	h := newAuthority().server(t, calls, func(o *auth.Options) { o.Issued = issued })
	status := func(user string) int {
		return do(h, withToken(sign(map[string]any{"sub": user}))).Code
	}
	if err := issued.Block(t.Context(), "https://other.example.com", "aki", "mori"); err != nil {
		t.Fatal(err)
	}
	if got := status("aki"); got != http.StatusOK {
		t.Errorf("blocked at another issuer: %d", got)
	}
	if err := issued.Block(t.Context(), issuerURL, "aki", "mori"); err != nil {
		t.Fatal(err)
	}
	if got, other := status("aki"), status("bo"); got != http.StatusUnauthorized || other != http.StatusOK {
		t.Errorf("blocked: %d, another user: %d", got, other)
	}
	if _, err := issued.Unblock(t.Context(), issuerURL, "aki"); err != nil {
		t.Fatal(err)
	}
	if got := status("aki"); got != http.StatusOK {
		t.Errorf("unblocked: %d", got)
	}
}

func TestOAuthScopes(t *testing.T) {
	t.Parallel()
	h := newAuthority().server(t, nil, func(o *auth.Options) { o.Scopes = []string{"tools:call", "tools:list"} })
	for name, test := range map[string]struct {
		claim  map[string]any
		status int
	}{
		"all":              {map[string]any{"scope": "tools:list other tools:call"}, http.StatusOK},
		"all, as a list":   {map[string]any{"scp": []string{"tools:list", "tools:call"}}, http.StatusOK},
		"one is missing":   {map[string]any{"scope": "tools:list"}, http.StatusForbidden},
		"none":             {nil, http.StatusForbidden},
		"of another type":  {map[string]any{"scope": 7}, http.StatusForbidden},
		"part of the name": {map[string]any{"scope": "tools:callx tools:list"}, http.StatusForbidden},
	} {
		w := do(h, withToken(sign(test.claim)))
		if w.Code != test.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		want := `Bearer error="insufficient_scope", error_description="The token lacks a scope that this server needs.", ` +
			`scope="tools:call tools:list", resource_metadata="https://hako.example.com/.well-known/oauth-protected-resource/mcp"`
		if got := w.Header().Get("WWW-Authenticate"); w.Code == http.StatusForbidden && got != want {
			t.Errorf("%s: WWW-Authenticate: %s", name, got)
		}
	}
}

// TestStepUp: a call whose token lacks a scope of the policy is answered as MCP's authorization has it, in JSON and where
// events were asked for.
func TestStepUp(t *testing.T) {
	t.Parallel()
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		if slices.Contains(call.Caller.Scopes, "files:write") && slices.Contains(call.Caller.Groups, "engineers") {
			return ok(text("done"))
		}
		return nil, &pipeline.NotAllowedError{Name: "x", Rule: "writing", Reason: "no", MissingScopes: []string{"files:write"}}
	})
	h := newAuthority().server(t, calls, func(o *auth.Options) { o.OAuth.GroupsClaim = "roles" })
	groups := []any{"engineers", 7, "hid\u200bden", ""}
	if w := do(h, withToken(sign(map[string]any{"scope": "files:write", "roles": groups}))); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "done") {
		t.Errorf("with the scope: %d %s", w.Code, w.Body)
	}
	lacking := sign(map[string]any{"scp": []string{"files:read", "not\" a=scope"}})
	plain := message(withoutSessions, 1, "tools/call", `{"name":"x"}`)
	for name, body := range map[string]string{
		"json": plain, "events": strings.Replace(plain, `"_meta":{`, `"_meta":{"progressToken":1,`, 1),
	} {
		r := post(withoutSessions, body, "Authorization", "Bearer "+lacking)
		w := do(h, r)
		want := `Bearer error="insufficient_scope", ` +
			`error_description="The token lacks a scope that this operation needs.", scope="files:read files:write", ` +
			`resource_metadata="https://hako.example.com/.well-known/oauth-protected-resource/mcp"`
		if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusForbidden || got != want ||
			!strings.Contains(w.Body.String(), "x is not allowed: no") {
			t.Errorf("%s: %d %s\n%s", name, w.Code, got, w.Body)
		}
	}
}

func TestOAuthMetadata(t *testing.T) {
	t.Parallel()
	h := newAuthority().server(t, nil, func(o *auth.Options) { o.Scopes = []string{"tools"} })
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "hako.example.com"
		w := do(h, r)
		want := `{"resource":"` + resourceURL + `","authorization_servers":["` + issuerURL +
			`"],"bearer_methods_supported":["header"],"scopes_supported":["tools"]}`
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" ||
			!sameJSON(t, w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestRotatedKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		h := a.server(t, nil, nil)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusOK {
			t.Fatalf("first key: %d", w.Code)
		}
		a.publish("second", rsaKeys[1])
		time.Sleep(issuer.RetryInterval)
		second := oidctest.SignIDToken(rsaKeys[1], "second", oidc.RS256, claims(nil))
		if w := do(h, withToken(second)); w.Code != http.StatusOK {
			t.Errorf("second key: %d %s", w.Code, w.Body)
		}
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusUnauthorized {
			t.Errorf("first key after the rotation: %d", w.Code)
		}
	})
}

// TestForgedTokensDoNotFloodTheIssuer: each makes the verifier ask for new keys.
func TestForgedTokensDoNotFloodTheIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		h := a.server(t, nil, nil)
		forged := oidctest.SignIDToken(rsaKeys[1], "made up", oidc.RS256, claims(nil))
		for range 100 {
			if w := do(h, withToken(forged)); w.Code != http.StatusUnauthorized {
				t.Fatalf("%d", w.Code)
			}
		}
		if n := a.asked.Load(); n != 2 { // discovery and keys
			t.Errorf("the issuer was asked %d times, want twice", n)
		}
	})
}

func TestIssuerIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		h := a.server(t, nil, nil)
		a.down.Store(true)
		for range 3 {
			w := do(h, withToken(sign(nil)))
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
				strings.Contains(w.Body.String(), "refused") {
				t.Errorf("down: %d %s", w.Code, w.Body)
			}
		}
		if n := a.asked.Load(); n != 1 {
			t.Errorf("it was asked %d times, want once", n)
		}
		a.down.Store(false)
		time.Sleep(issuer.RetryInterval)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusOK {
			t.Errorf("up again: %d %s", w.Code, w.Body)
		}
		a.down.Store(true)
		time.Sleep(issuer.MaxAge)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusOK {
			t.Errorf("down with a known key: %d %s", w.Code, w.Body)
		}
		unknown := oidctest.SignIDToken(rsaKeys[1], "new", oidc.RS256, claims(nil))
		if w := do(h, withToken(unknown)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("down with an unknown key: %d %s", w.Code, w.Body)
		}
		time.Sleep(issuer.RetryInterval)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusServiceUnavailable {
			t.Errorf("down with a key that is too old: %d %s", w.Code, w.Body)
		}
	})
}

func TestKeysWithoutDiscovery(t *testing.T) {
	t.Parallel()
	a := newAuthority()
	h := a.server(t, nil, func(o *auth.Options) { o.OAuth.Issuers[0].Keys = issuerURL + "/keys" })
	if w := do(h, withToken(sign(nil))); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if n := a.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times, want once", n)
	}
}

// TestUsersOfTwoIssuers: the same name at another issuer is somebody else.
func TestUsersOfTwoIssuers(t *testing.T) {
	t.Parallel()
	one, two := &auth.Identity{User: "aki", Issuer: "https://a"}, &auth.Identity{User: "aki", Issuer: "https://b"}
	if one.Key() == two.Key() {
		t.Error("both are the same user")
	}
}

// signAs signs claims under a header of the test's own.
func signAs(header string, change map[string]any) string {
	return forge(header, claims(change), func(input string) []byte {
		sum := sha256.Sum256([]byte(input))
		signature, err := rsa.SignPKCS1v15(rand.Reader, rsaKeys[0], crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return signature
	})
}

// TestHostileTokens: what the issuer has signed for another purpose does not open this frontend.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	h := newAuthority().server(t, nil, nil)
	strict := newAuthority().server(t, nil, func(o *auth.Options) { o.OAuth.Strict = true })
	expect := func(t *testing.T, h http.Handler, token string, want int) {
		t.Helper()
		if w := do(h, withToken(token)); w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
	typed := func(typ string) string {
		return signAs(`{"alg":"RS256","kid":"first","typ":`+typ+`}`, nil)
	}
	for _, typ := range []string{
		`"logout+jwt"`, `"dpop+jwt"`, `"secevent+jwt"`, `"token-introspection+jwt"`, `"oauth-authz-req+jwt"`,
		`"id_token+jwt"`, `"application/logout+jwt"`,
		`"client-authentication+jwt"`, `"entity-statement+jwt"`, `"dc+sd-jwt"`, `"kb+jwt"`, `"openid4vci-proof+jwt"`,
		`"jwt+logout"`, `"at+jwt "`, `" JWT"`,
		`"at+jwt,logout+jwt"`, `"application/application/at+jwt"`, `"text/at+jwt"`, `"LOGOUT+JWT"`, `"JOSE"`, `""`,
		`null`, `7`, `["at+jwt"]`, `{"at+jwt":1}`,
	} {
		t.Run("type "+typ, func(t *testing.T) {
			t.Parallel()
			expect(t, h, typed(typ), http.StatusUnauthorized)
			expect(t, strict, typed(typ), http.StatusUnauthorized)
		})
	}
	for _, typ := range []string{`"at+jwt"`, `"AT+JWT"`, `"application/at+jwt"`} {
		t.Run("access token "+typ, func(t *testing.T) {
			t.Parallel()
			expect(t, h, typed(typ), http.StatusOK)
			expect(t, strict, typed(typ), http.StatusOK)
		})
	}
	for name, token := range map[string]string{`"JWT"`: typed(`"JWT"`), `"application/jwt"`: typed(`"application/jwt"`), "none": signAs(`{"alg":"RS256","kid":"first"}`, nil)} {
		t.Run("plain type "+name, func(t *testing.T) {
			t.Parallel()
			expect(t, h, token, http.StatusOK)
			expect(t, strict, token, http.StatusUnauthorized)
		})
	}
	for name, header := range map[string]string{
		"critical b64":              `{"alg":"RS256","kid":"first","b64":true,"crit":["b64"]}`,
		"b64 alone":                 `{"alg":"RS256","kid":"first","b64":false}`,
		"critical of no name":       `{"alg":"RS256","kid":"first","crit":[]}`,
		"critical of unknown name":  `{"alg":"RS256","kid":"first","crit":["exp"],"exp":1}`,
		"a token in it":             `{"alg":"RS256","kid":"first","cty":"JWT"}`,
		"encrypted":                 `{"alg":"RS256","kid":"first","enc":"A256GCM"}`,
		"compressed":                `{"alg":"RS256","kid":"first","zip":"DEF"}`,
		"typ twice":                 `{"alg":"RS256","kid":"first","typ":"logout+jwt","typ":"at+jwt"}`,
		"typ twice, the other last": `{"alg":"RS256","kid":"first","typ":"at+jwt","typ":"logout+jwt"}`,
		"alg twice":                 `{"alg":"none","alg":"RS256","kid":"first"}`,
		"kid is a path":             `{"alg":"RS256","kid":"../first"}`,
		"kid is a query":            `{"alg":"RS256","kid":"first' OR '1'='1"}`,
		"kid with a zero byte":      `{"alg":"RS256","kid":"first\u0000"}`,
		"kid is an address":         `{"alg":"RS256","kid":"https://evil.example.com/keys"}`,
		"no algorithm":              `{"kid":"first"}`,
		"another algorithm":         `{"alg":"PS256","kid":"first"}`,
		"more after it":             `{"alg":"RS256","kid":"first"} {}`,
	} {
		t.Run("header: "+name, func(t *testing.T) {
			t.Parallel()
			expect(t, h, signAs(header, nil), http.StatusUnauthorized)
		})
	}
	for name, more := range map[string]string{
		"sub twice": `"sub":"root"`, "iss twice": `"iss":"` + issuerURL + `"`, "aud twice, escaped": `"a\u0075d":"` +
			resourceURL + `"`, "below": `"x":{"a":1,"a":2}`,
	} {
		t.Run("claims: "+name, func(t *testing.T) {
			t.Parallel()
			whole := strings.TrimSuffix(claims(nil), "}") + "," + more + "}"
			expect(t, h, oidctest.SignIDToken(rsaKeys[0], "first", oidc.RS256, whole), http.StatusUnauthorized)
		})
	}
	for name, change := range map[string]map[string]any{
		"bound to a certificate (RFC 8705)": {"cnf": map[string]any{"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}},
		"bound to a key (RFC 9449)":         {"cnf": map[string]any{"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}},
		"bound to a key (RFC 7800)":         {"cnf": map[string]any{"kid": "x"}},
		"bound to nothing":                  {"cnf": map[string]any{}},
		"bound, as text":                    {"cnf": "x"},
		"an ID token with a nonce":          {"nonce": "n"},
		"an ID token with at_hash":          {"at_hash": "x"},
		"an ID token with c_hash":           {"c_hash": "x"},
		"an ID token of Keycloak":           {"typ": "ID"},
		"an ID token of Cognito":            {"token_use": "id"},
		"a refresh token":                   {"typ": "Refresh"},
		"an offline token":                  {"typ": "Offline"},
		"a logout token":                    {"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}},
		"an answer of introspection":        {"token_introspection": map[string]any{"active": true}},
		"a DPoP proof":                      {"htm": "POST", "htu": resourceURL},
		"a request object":                  {"response_type": "code", "redirect_uri": "https://evil.example.com"},
		"issued in the future":              {"iat": time.Now().Add(time.Hour).Unix()},
		"valid in the future":               {"nbf": time.Now().Add(time.Hour).Unix()},
		"expiry is no number":               {"exp": "tomorrow"},
		"expiry below all":                  {"exp": -1e300},
		"huge":                              {"padding": strings.Repeat("a", 40<<10)},
		"audience is part of a text":        {"aud": "x " + resourceURL},
		"audience in an object":             {"aud": map[string]any{resourceURL: true}},
		"thousands of audiences": {"aud": strings.Split(strings.Repeat("https://a.example.com ", 3000),
			" ")},
		"issuer is a list": {"iss": []string{issuerURL}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, h, sign(change), http.StatusUnauthorized)
		})
	}
	inner := sign(nil)
	for name, token := range map[string]string{
		"a token in a token":    forge(`{"alg":"RS256","kid":"first"}`, inner, func(string) []byte { return nil }),
		"four parts":            inner + ".x",
		"as JSON":               `{"payload":"` + strings.Split(inner, ".")[1] + `"}`,
		"blanks inside":         strings.Replace(inner, ".", ". ", 1),
		"padded":                strings.Replace(inner, ".", "=.", 1),
		"another base64":        strings.ReplaceAll(strings.ReplaceAll(inner, "-", "+"), "_", "/") + "+",
		"signature cut":         inner[:len(inner)-4],
		"signature of no bytes": inner[:strings.LastIndex(inner, ".")+1],
		"megabytes of dots":     strings.Repeat(".", 500<<10),
		"megabytes in one part": strings.Repeat("A", 500<<10),
		"deeply nested, unsigned": forge(`{"alg":"RS256"}`, strings.Repeat(`{"a":`, 4000)+"1"+strings.Repeat("}", 4000),
			func(string) []byte { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, h, token, http.StatusUnauthorized)
		})
	}
}

// TestHostileTokensOfAWithdrawnKey: within the maximum age, without an unknown key that would have made the server
// look.
func TestHostileTokensOfAWithdrawnKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		h := a.server(t, nil, nil)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusOK {
			t.Fatalf("%d", w.Code)
		}
		a.publish("second", rsaKeys[1])
		time.Sleep(issuer.MaxAge)
		if w := do(h, withToken(sign(nil))); w.Code != http.StatusUnauthorized {
			t.Errorf("a withdrawn key: %d", w.Code)
		}
	})
}

// TestHostileIdentities: a person has one name, which people can read.
func TestHostileIdentities(t *testing.T) {
	t.Parallel()
	h := newAuthority().server(t, nil, func(o *auth.Options) { o.OAuth.TenantClaim = "org" })
	for _, name := range []string{
		"x\x00bob", "bob\n", "a\x1b[2J", "bob\u202e", "b\u200bob", "\ufeffbob", "bob\u2066x", "bob\U000e0041",
		"bob\u00ad", "bob ", " bob", "\tbob",
		"bob\u0085", "bob\x7f", "bob\u2028", strings.Repeat("b", 257),
	} {
		for claim, other := range map[string]string{"sub": "org", "org": "sub"} {
			t.Run(fmt.Sprintf("%s %.20q", claim, name), func(t *testing.T) {
				t.Parallel()
				w := do(h, withToken(sign(map[string]any{claim: name, other: "fine"})))
				if w.Code != http.StatusUnauthorized {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
			t.Run(fmt.Sprintf("static %s %.20q", claim, name), func(t *testing.T) {
				t.Parallel()
				_, hash := bearer.New()
				token := bearer.Token{Name: "ci", Hash: hash, User: name}
				if claim == "org" {
					token = bearer.Token{Name: "ci", Hash: hash, Tenant: name}
				}
				if _, err := auth.New(auth.Options{Tokens: []bearer.Token{token}}); err == nil {
					t.Error("it counts")
				}
			})
		}
	}
	for name, pair := range map[string][2]*auth.Identity{
		"separator in the user":   {{Tenant: "acme", User: "x\x00bob"}, {Tenant: "acme\x00x", User: "bob"}},
		"separator in the issuer": {{Issuer: "i\x00acme", User: "bob"}, {Issuer: "i", Tenant: "acme", User: "bob"}},
		"lengths in the user":     {{Tenant: "a", User: "1:b"}, {Tenant: "a1:1", User: "b"}},
		"empty tenant":            {{Tenant: "", User: "0:"}, {Tenant: "0:", User: ""}},
		"another issuer":          {{Issuer: "https://a", User: "aki"}, {Issuer: "https://b", User: "aki"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if pair[0].Key() == pair[1].Key() {
				t.Errorf("both are %q", pair[0].Key())
			}
		})
	}
}
