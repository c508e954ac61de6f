package console_test

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	keys "github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/govern/policy"
)

// issuer is a provider of identities for tests. change alters the claims, and header that of the token, before it is
// signed.
type issuer struct {
	*httptest.Server
	clock *clock

	mu       sync.Mutex
	key      *rsa.PrivateKey
	id       string
	asked    url.Values // of the last authorization
	claims   map[string]any
	header   map[string]any
	exchange url.Values // of the last exchange
	sign     func(signed string) string
	down     bool
	// published is the key set's key where it is not the one that signs.
	published string
}

func newIssuer(t *testing.T, c *clock) *issuer {
	t.Helper()
	i := &issuer{clock: c}
	i.rotate("one")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("/keys", i.keys)
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// issuerKeys are by their id. They are made once, which takes long.
var issuerKeys = sync.OnceValue(func() map[string]*rsa.PrivateKey {
	keys := map[string]*rsa.PrivateKey{}
	for _, id := range []string{"one", "two"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[id] = key
	}
	return keys
})

// rotate has the issuer sign with another key.
func (i *issuer) rotate(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.id = issuerKeys()[id], id
}

// withdraw publishes another key, and goes on signing with the one before.
func (i *issuer) withdraw(published string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = published
}

func (i *issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	if i.down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri":                              i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"},
	})
}

func (i *issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id := cmp.Or(i.published, i.id)
	key := issuerKeys()[id]
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}})
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	i.exchange = r.PostForm
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if r.PostForm.Get("code") != "good" || encode(sum[:]) != i.asked.Get("code_challenge") {
		http.Error(w, `{"error":"invalid_grant","error_description":"hako_secret_of_the_issuer"}`,
			http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.identity()})
}

// identity is a token for whoever was asked about.
func (i *issuer) identity() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": "hako", "sub": "1", "nonce": i.asked.Get("nonce"), "iat": now.Unix(),
		"exp":   now.Add(5 * time.Minute).Unix(),
		"email": "aki@example.com", "email_verified": true, "groups": []string{"staff", "operators"},
	}
	header := map[string]any{"alg": "RS256", "kid": i.id}
	for _, change := range []struct{ to, from map[string]any }{{claims, i.claims}, {header, i.header}} {
		for name, value := range change.from {
			if change.to[name] = value; value == nil {
				delete(change.to, name)
			}
		}
	}
	h, _ := json.Marshal(header)
	c, _ := json.Marshal(claims)
	signed := encode(h) + "." + encode(c)
	if i.sign != nil {
		return signed + "." + i.sign(signed)
	}
	sum := sha256.Sum256([]byte(signed))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	return signed + "." + encode(signature)
}

// oidcWorld is a world whose people come from the issuer.
func oidcWorld(t *testing.T, change func(*console.OIDC)) (*world, *issuer) {
	t.Helper()
	var i *issuer
	w := newWorld(t, func(w *world, o *console.Options) {
		i = newIssuer(t, w.clock)
		options := &console.OIDC{Issuer: i.URL, ClientID: "hako", Roles: map[console.Role]policy.People{
			console.Viewer: {Groups: []string{"staff"}}, console.Admin: {Groups: []string{"operators"},
				Users: []string{"root@example.com"}},
		}}
		if change != nil {
			change(options)
		}
		o.Logins.OIDC = options
	})
	return w, i
}

// begin begins a login and returns the state that the issuer gives back.
func (i *issuer) begin(t *testing.T, b *browser) (state string) {
	t.Helper()
	got := b.get("oidc/login")
	to, err := url.Parse(got.header.Get("Location"))
	if err != nil || got.status != http.StatusFound {
		t.Fatalf("%d %s to %q", got.status, got.body, got.header.Get("Location"))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = to.Query()
	return i.asked.Get("state")
}

// end ends it, and returns where it leads.
func (b *browser) end(query url.Values) (where string, status int) {
	got := b.do("GET", "oidc/callback?"+query.Encode(), nil,
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	return got.header.Get("Location"), got.status
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	w, i := oidcWorld(t, nil)
	b := w.browser()
	state := i.begin(t, b)
	if i.asked.Get("response_type") != "code" || i.asked.Get("code_challenge_method") != "S256" || len(state) < 20 ||
		len(i.asked.Get("nonce")) < 20 ||
		i.asked.Get("redirect_uri") != "http://127.0.0.1:8420/console/api/oidc/callback" ||
		i.asked.Get("scope") != "openid profile email" {
		t.Errorf("asked %v", i.asked)
	}
	where, status := b.end(url.Values{"code": {"good"}, "state": {state}, "iss": {i.URL}, "session_state": {"x"},
		"of_this_provider": {"1", "2"}})
	if where != "/console/" || status != http.StatusSeeOther {
		t.Fatalf("led to %q: %d", where, status)
	}
	var session struct {
		User struct {
			Name, Role, Via string
			Groups          []string
		}
	}
	b.get("session").into(t, &session)
	if u := session.User; u.Name != "aki@example.com" || u.Role != "admin" || u.Via != "oidc" || len(u.Groups) != 2 {
		t.Errorf("session = %+v", session)
	}
	if where, _ := b.end(url.Values{"code": {"good"}, "state": {state}}); where != "/console/#login=expired" {
		t.Errorf("a second time it leads to %q", where)
	}
	i.rotate("two")
	w.clock.add(keys.RetryInterval)
	other := w.browser()
	if where, _ := other.end(url.Values{"code": {"good"}, "state": {i.begin(t, other)}}); where != "/console/" {
		t.Errorf("after the issuer has changed its keys it leads to %q", where)
	}
	w.reconfigure(console.Logins{OIDC: &console.OIDC{Issuer: i.URL, ClientID: "hako",
		Roles: map[console.Role]policy.People{console.Viewer: {Groups: []string{"staff"}}}}})
	if b.get("session").into(t, &session); session.User.Role != "viewer" {
		t.Errorf("with other roles configured: %+v", session)
	}
}

// TestOIDCBlocked: blocking a person ends the person's sessions, and new logins fail.
func TestOIDCBlocked(t *testing.T) {
	t.Parallel()
	var options *console.OIDC
	w, i := oidcWorld(t, func(o *console.OIDC) { options = o })
	issued, err := bearer.Open(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	w.reconfigure(console.Logins{OIDC: options, Issued: issued})
	logIn := func() (b *browser, where string) {
		b = w.browser()
		where, _ = b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}})
		return b, where
	}
	for _, issuer := range []string{"https://other.example.com", i.URL} {
		b, where := logIn()
		if got := b.get("overview").status; where != "/console/" || got != http.StatusOK {
			t.Errorf("before: led to %q, %d", where, got)
		}
		if err := issued.Block(t.Context(), issuer, "aki@example.com", "mori"); err != nil {
			t.Fatal(err)
		}
		if got := b.get("overview").status; (got == http.StatusOK) != (issuer != i.URL) {
			t.Errorf("blocked at %s: %d", issuer, got)
		}
	}
	if _, where := logIn(); where != "/console/#login=failed" || !strings.Contains(w.records(), "console.login failed aki@") {
		t.Errorf("led to %q, records %s", where, w.records())
	}
}

func TestOIDCRefuses(t *testing.T) {
	t.Parallel()
	type set struct {
		claims, header map[string]any
		query          url.Values
		issuer         func(*issuer)
		browser        func(*world, *browser)
		options        func(*console.OIDC)
	}
	for name, test := range map[string]struct {
		set
		want string
	}{
		"state of another login": {set{query: url.Values{"state": {"other"}}}, "expired"},
		"no state":               {set{query: url.Values{"state": nil}}, "expired"},
		"another browser": {set{browser: func(_ *world, b *browser) { clear(b.cookies) }},
			"expired"},
		"a cookie that is none": {set{browser: func(_ *world,
			b *browser) {
			b.cookies["hako-console-login-8420"] = "e30"
		}}, "expired"},
		"too late": {set{browser: func(w *world,
			_ *browser) {
			w.clock.add(11 * time.Minute)
		}}, "expired"},
		"another issuer (RFC 9207)": {set{query: url.Values{"iss": {"https://evil.example.com"}}},
			"expired"},
		"the person says no": {set{query: url.Values{"code": nil, "error": {"access_denied"}}},
			"denied"},
		"no code":        {set{query: url.Values{"code": nil}}, "denied"},
		"wrong code":     {set{query: url.Values{"code": {"bad"}}}, "failed"},
		"wrong nonce":    {set{claims: map[string]any{"nonce": "other"}}, "failed"},
		"no nonce":       {set{claims: map[string]any{"nonce": nil}}, "failed"},
		"wrong audience": {set{claims: map[string]any{"aud": "another"}}, "failed"},
		"two audiences, other party": {set{claims: map[string]any{"aud": []string{"hako", "another"},
			"azp": "another"}}, "failed"},
		"two audiences, no party": {set{claims: map[string]any{"aud": []string{"hako", "another"}}},
			"failed"},
		"wrong issuer": {set{claims: map[string]any{"iss": "https://evil.example.com"}},
			"failed"},
		"expired": {set{claims: map[string]any{"exp": newClock().Now().Add(-61 * time.Second).Unix()}}, "failed"},
		"not yet": {set{claims: map[string]any{"nbf": newClock().Now().Add(time.Hour).Unix()}}, "failed"},
		"no signature (alg none)": {set{header: map[string]any{"alg": "none"},
			issuer: func(i *issuer) { i.sign = func(string) string { return "" } }}, "failed"},
		"signed with the public key (alg HS256)": {set{header: map[string]any{"alg": "HS256"}}, "failed"},
		"signature of somebody else":             {set{issuer: func(i *issuer) { i.sign = func(string) string { return encode(make([]byte, 256)) } }}, "failed"},
		"unknown key":                            {set{header: map[string]any{"kid": "other"}}, "failed"},
		"no user":                                {set{claims: map[string]any{"email": nil}}, "failed"},
		"user is no text":                        {set{claims: map[string]any{"email": []string{"a"}}}, "failed"},
		"user is huge": {set{claims: map[string]any{"email": strings.Repeat("a", 300)}},
			"failed"},
		"address not verified":            {set{claims: map[string]any{"email_verified": false}}, "failed"},
		"address not said to be verified": {set{claims: map[string]any{"email_verified": nil}}, "failed"},
		"address not verified, in words":  {set{claims: map[string]any{"email_verified": "false"}}, "failed"},
		"unknown group":                   {set{claims: map[string]any{"groups": []string{"visitors"}}}, "role"},
		"no groups":                       {set{claims: map[string]any{"groups": nil}}, "role"},
		"groups are numbers":              {set{claims: map[string]any{"groups": []int{1, 2}}}, "role"},
		"the issuer is down":              {set{issuer: func(i *issuer) { i.down = true }}, "unavailable"},

		"within the skew of clocks": {set{claims: map[string]any{"exp": newClock().Now().Add(-59 * time.Second).Unix()}}, ""},
		"named as a user":           {set{claims: map[string]any{"email": "root@example.com", "groups": nil}}, ""},
		"one group":                 {set{claims: map[string]any{"groups": "operators"}}, ""},
		"verified, in words":        {set{claims: map[string]any{"email_verified": "true"}}, ""},
		"another claim": {set{claims: map[string]any{"name": "root@example.com", "groups": nil, "email": nil},
			options: func(o *console.OIDC) { o.UserClaim = "name" }}, ""},
		"another claim with groups": {set{claims: map[string]any{"roles": []string{"operators"}, "groups": nil},
			options: func(o *console.OIDC) { o.GroupsClaim = "roles" }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, i := oidcWorld(t, test.options)
			i.claims, i.header = test.claims, test.header
			if test.issuer != nil {
				test.issuer(i)
			}
			b := w.browser()
			if i.down {
				if got := b.get("oidc/login"); got.header.Get("Location") != "/console/#login=unavailable" {
					t.Errorf("led to %q", got.header.Get("Location"))
				}
				return
			}
			query := url.Values{"code": {"good"}, "state": {i.begin(t, b)}}
			for name, value := range test.query {
				if query[name] = value; value == nil {
					query.Del(name)
				}
			}
			if test.browser != nil {
				test.browser(w, b)
			}
			where, _ := b.end(query)
			if want := strings.TrimSuffix("/console/#login="+test.want, "#login="); where != want {
				t.Errorf("led to %q, want %q", where, want)
			}
			in := b.get("overview").status == http.StatusOK
			if in != (test.want == "") {
				t.Errorf("is anybody logged in? %t", in)
			}
			if log := w.records(); strings.Contains(log, "hako_secret") ||
				test.want != "" && !strings.Contains(log, "console.login failed") {
				t.Errorf("the audit log has\n%s", log)
			}
		})
	}
}

// TestOIDCOtherName: who came by another name of this machine is sent to the one that the issuer leads back to, for the
// cookie to be there.
func TestOIDCOtherName(t *testing.T) {
	t.Parallel()
	w, _ := oidcWorld(t, nil)
	got := w.browser().do("GET", "oidc/login", nil, func(r *http.Request) { r.Host = "localhost:8420" })
	if got.header.Get("Location") != "http://127.0.0.1:8420/console/api/oidc/login" ||
		got.header.Get("Set-Cookie") != "" {
		t.Errorf("%d to %q", got.status, got.header.Get("Location"))
	}
}

// TestOIDCBruteForce: neither exchanges nor refusals, which anybody can make up, go on without end.
func TestOIDCBruteForce(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]url.Values{
		"exchanges": {"code": {"bad"}}, "refusals": {"error": {"access_denied"}},
		"answers to no question": {"state": {"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, i := oidcWorld(t, nil)
			limited := 0
			for range 12 {
				b := w.browser()
				query := maps.Clone(query)
				if begun := i.begin(t, b); !query.Has("state") {
					query.Set("state", begun)
				}
				if where, _ := b.end(query); where == "/console/#login=limited" {
					limited++
				}
			}
			if records := strings.Count(w.records(), "console.login failed"); limited != 2 || records != 10 {
				t.Errorf("%d of 12 were refused, and %d recorded, want 2 and 10", limited, records)
			}
		})
	}
}

// TestHostileTokens: what the issuer has signed for another purpose is no identity, and nothing secret follows a
// redirect.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	login := func(t *testing.T, change func(*issuer)) (where string) {
		t.Helper()
		w, i := oidcWorld(t, nil)
		change(i)
		b := w.browser()
		where, _ = b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}})
		if in := b.get("overview").status == http.StatusOK; in {
			t.Error("somebody is logged in")
		}
		return where
	}
	for name, header := range map[string]map[string]any{
		"an access token":        {"typ": "at+jwt"},
		"a logout token":         {"typ": "logout+jwt"},
		"a security event":       {"typ": "application/secevent+jwt"},
		"a DPoP proof":           {"typ": "dpop+jwt"},
		"a request object":       {"typ": "oauth-authz-req+jwt"},
		"of an unknown type":     {"typ": "x"},
		"of the type 7":          {"typ": 7},
		"critical":               {"crit": []string{"b64"}, "b64": true},
		"a token in it":          {"cty": "JWT"},
		"key at an address":      {"jku": "https://evil.example.com/keys", "kid": "evil"},
		"key that is a path":     {"kid": "../one"},
		"for a weaker algorithm": {"alg": "RS1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if where := login(t, func(i *issuer) { i.header = header }); where != "/console/#login=failed" {
				t.Errorf("led to %q", where)
			}
		})
	}
	for name, claims := range map[string]map[string]any{
		"claims of a logout token":         {"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}},
		"claims of a refresh token":        {"typ": "Refresh"},
		"claims of an access token":        {"token_use": "access"},
		"claims of introspection":          {"token_introspection": map[string]any{"active": true}},
		"claims of a DPoP proof":           {"htm": "POST", "htu": "https://hako.example.com"},
		"bound to a key":                   {"cnf": map[string]any{"jkt": "x"}},
		"of the future":                    {"iat": newClock().Now().Add(2 * time.Minute).Unix()},
		"huge":                             {"padding": strings.Repeat("a", 40<<10)},
		"one audience, another party":      {"azp": "another"},
		"party is a list":                  {"azp": []string{"hako"}},
		"thousands of audiences, no party": {"aud": strings.Fields(strings.Repeat("a ", 900) + "hako")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if where := login(t, func(i *issuer) { i.claims = claims }); where != "/console/#login=failed" {
				t.Errorf("led to %q", where)
			}
		})
	}
	for _, path := range []string{"/token", "/keys", "/.well-known/openid-configuration"} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			t.Run(fmt.Sprintf("%s redirects with %d", path, status), func(t *testing.T) {
				t.Parallel()
				evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					t.Errorf("something came to %s", r.URL.Path)
				}))
				defer evil.Close()
				w, i := oidcWorld(t, nil)
				inner := i.Config.Handler
				i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path {
						http.Redirect(w, r, evil.URL+path, status)
						return
					}
					inner.ServeHTTP(w, r)
				})
				b := w.browser()
				if strings.Contains(path, "well-known") {
					if got := b.get("oidc/login"); got.header.Get("Location") != "/console/#login=unavailable" {
						t.Errorf("led to %q", got.header.Get("Location"))
					}
					return
				}
				where, _ := b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}})
				if where != "/console/#login=failed" || b.get("overview").status == http.StatusOK {
					t.Errorf("led to %q", where)
				}
			})
		}
	}
	t.Run("a withdrawn key", func(t *testing.T) {
		t.Parallel()
		w, i := oidcWorld(t, nil)
		b := w.browser()
		if where, _ := b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}}); where != "/console/" {
			t.Fatalf("led to %q", where)
		}
		i.withdraw("two")
		w.clock.add(keys.MaxAge + time.Second)
		other := w.browser()
		if where, _ := other.end(url.Values{"code": {"good"}, "state": {i.begin(t, other)}}); where != "/console/#login=failed" {
			t.Errorf("led to %q", where)
		}
	})
}

// TestHostileIdentities: a person has one name, which people can read, and no role by a group or a name that it chose.
func TestHostileIdentities(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]map[string]any{
		"a group called like a user":      {"groups": []string{"root@example.com"}},
		"one group called like a user":    {"groups": "root@example.com"},
		"a user called like a group":      {"name": "operators", "groups": []string{}},
		"both":                            {"name": "operators", "groups": []string{"root@example.com"}},
		"a group in other letters":        {"groups": []string{"Operators", "OPERATORS"}},
		"groups in one text":              {"groups": "x,operators"},
		"groups in one text, with blanks": {"groups": "x operators"},
		"groups in an object":             {"groups": map[string]any{"operators": true}},
		"a group in a list in a list":     {"groups": []any{[]any{"operators"}}},
		"a user in a list":                {"name": []any{"root@example.com"}, "groups": nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, i := oidcWorld(t, func(o *console.OIDC) { o.UserClaim = "name" })
			i.claims = map[string]any{"name": "ken"}
			maps.Copy(i.claims, claims)
			b := w.browser()
			where, _ := b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}})
			if want := map[bool]string{true: "failed", false: "role"}[name == "a user in a list"]; where != "/console/#login="+want {
				t.Errorf("led to %q", where)
			}
		})
	}
	for _, name := range []string{
		"root@example.com\x00", "root@example.com\n", "\u200broot@example.com", "root@example.com\u202e",
		"root@example.com ", "\ufeffroot@example.com",
		"root\u00ad@example.com", "root@example.com\x1b[2K", "root@example.com\U000e0041",
	} {
		t.Run(fmt.Sprintf("user %q", name), func(t *testing.T) {
			t.Parallel()
			w, i := oidcWorld(t, nil)
			i.claims = map[string]any{"email": name}
			b := w.browser()
			if where, _ := b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}}); where != "/console/#login=failed" {
				t.Errorf("led to %q", where)
			}
		})
		t.Run(fmt.Sprintf("group %q", name), func(t *testing.T) {
			t.Parallel()
			w, i := oidcWorld(t, nil)
			i.claims = map[string]any{"groups": []string{name, strings.ReplaceAll(name, "root@example.com",
				"operators")}}
			b := w.browser()
			if where, _ := b.end(url.Values{"code": {"good"}, "state": {i.begin(t, b)}}); where != "/console/#login=role" {
				t.Errorf("led to %q", where)
			}
		})
	}
}
