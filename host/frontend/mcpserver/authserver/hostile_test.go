package authserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/internal/attempts"
)

// TestHostileRedirects: a code goes only to a registered URI, and no request makes hako redirect elsewhere.
func TestHostileRedirects(t *testing.T) {
	w := newWorld(t)
	c, local := w.register(appURL, "com.example.app:/callback"), w.register(loopbackURL, "http://[::1]:1/callback")
	for _, redirect := range []string{
		"https://evil.example/callback", "https://app.example.com/callback/", "https://app.example.com/callback?x=1",
		"https://app.example.com/callback/../evil", "https://app.example.com:444/callback", "https://APP.example.com/callback",
		"http://app.example.com/callback", "https://app.example.com@evil.example/callback", "//app.example.com/callback",
		"https://app.example.com/callback#x", "https://app.example.com/callback%0d%0aX: y", `https://app.example.com\@evil.example/`,
		"javascript:alert(1)", "data:text/html,x", "com.example.app:/callback2", "", "/callback", "https://app.example.com.evil.example/callback",
	} {
		response := newBrowser().get(w.Server, c.query(url.Values{"redirect_uri": {redirect}}))
		if response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
			t.Errorf("%q: %s, redirected to %q", redirect, response.Status, response.Header.Get("Location"))
		}
	}
	for redirect, allowed := range map[string]bool{
		"http://127.0.0.1:65000/callback": true, "http://127.0.0.1/callback": true, "http://[::1]:22/callback": true,
		"http://localhost:3000/callback": false, "http://127.0.0.2:3000/callback": false,
		"http://127.0.0.1:3000/other": false, "https://127.0.0.1:3000/callback": false,
		"http://127.0.0.1:3000@evil.example/callback": false, "http://127.0.0.1.evil.example:3000/callback": false,
		"http://127.0.0.1:3000/callback?a=b": false, "http://[::1%25evil]:1/callback": false,
	} {
		response := newBrowser().get(w.Server, local.query(url.Values{"redirect_uri": {redirect}}))
		if got := response.StatusCode == http.StatusOK; got != allowed || response.Header.Get("Location") != "" {
			t.Errorf("%q: %s, allowed should be %v", redirect, response.Status, allowed)
		}
	}
}

// TestHostileRequests: requests with an error end on a page of hako's, not with a redirect.
func TestHostileRequests(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	for name, change := range map[string]url.Values{
		"no challenge": {"code_challenge": nil}, "no method": {"code_challenge_method": nil},
		"plain": {"code_challenge_method": {"plain"}}, "short challenge": {"code_challenge": {"abc"}},
		"implicit": {"response_type": {"token"}}, "hybrid": {"response_type": {"code id_token"}},
		"another resource": {"resource": {"https://other.example.com/mcp"}},
		"two resources":    {"resource": {resourceURL, "https://other.example.com/mcp"}},
		"unknown client":   {"client_id": {"hako-client-X"}},
		"a client of NULs": {"client_id": {clientPrefix + strings.Repeat("\x00", 26)}}, "no client": {"client_id": nil},
		"two clients": {"client_id": {c.id, c.id}}, "two redirects": {"redirect_uri": {appURL, appURL}},
		"huge state": {"state": {strings.Repeat("x", maxState+1)}},
	} {
		response := newBrowser().get(w.Server, c.query(change))
		if response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
			t.Errorf("%s: %s, redirected to %q", name, response.Status, response.Header.Get("Location"))
		}
	}
	response := newBrowser().get(w.Server, c.query(url.Values{"resource": {"HTTPS://HAKO.example.com/mcp/"}}))
	if response.StatusCode != http.StatusOK {
		t.Errorf("the resource in another spelling: %s", response.Status)
	}
}

// TestHostileCodes: a code can be used once, by its client, with its verifier and its redirect URI.
func TestHostileCodes(t *testing.T) {
	w := newWorld(t)
	c, other := w.register(appURL), w.register(appURL)
	for name, change := range map[string]url.Values{
		"no verifier": {"code_verifier": nil}, "another verifier": {"code_verifier": {strings.Repeat("x", 43)}},
		"the challenge as verifier": {"code_verifier": {challengeOf(c.verifier)}},
		"another client":            {"client_id": {other.id}}, "no client": {"client_id": nil},
		"another redirect": {"redirect_uri": {"https://evil.example/callback"}}, "no redirect": {"redirect_uri": nil},
		"another resource": {"resource": {"https://other.example.com/mcp"}},
	} {
		w.failures, w.consents = attempts.New(), attempts.New()
		code := w.authorize(newBrowser(), c).Get("code")
		if response := c.exchange(w.Server, code, change); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, response.Status)
		}
		if name == "another resource" {
			continue // it is refused before the code is looked at
		}
		if response := c.exchange(w.Server, code, nil); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: the code can be used again: %s", name, response.Status)
		}
	}
	w.failures, w.consents, w.events = attempts.New(), attempts.New(), nil
	code := w.authorize(newBrowser(), c).Get("code")
	access, refresh := tokensOf(t, c.exchange(w.Server, code, nil))
	if response := c.exchange(w.Server, code, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a replayed code: %s", response.Status)
	}
	if isValid(t, w.replica(), access) || c.refresh(w.Server, refresh, nil).StatusCode == http.StatusOK {
		t.Error("the tokens of a replayed code stay valid")
	}
	if last := w.events[len(w.events)-1]; last.Action != Revoked || !errors.Is(last.Err, errReplayed) {
		t.Errorf("recorded %+v", last)
	}
	code = w.authorize(newBrowser(), c).Get("code")
	w.ahead.Store(int64(codeLifetime))
	if response := c.exchange(w.Server, code, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("an expired code: %s", response.Status)
	}
}

// TestHostileCodeRace: of many exchanges of one code at two replicas, at most one succeeds.
func TestHostileCodeRace(t *testing.T) {
	w := newWorld(t)
	servers := []*Server{w.Server, w.replica()}
	c := w.register(appURL)
	code := w.authorize(newBrowser(), c).Get("code")
	var succeeded atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if c.exchange(servers[i%2], code, nil).StatusCode == http.StatusOK {
				succeeded.Add(1)
			}
		})
	}
	group.Wait()
	if n := succeeded.Load(); n > 1 {
		t.Errorf("%d exchanges of one code succeeded", n)
	}
}

// TestHostileRefresh: a refresh token can be used once and by its client; a second use ends the login.
func TestHostileRefresh(t *testing.T) {
	w := newWorld(t)
	c, other := w.register(appURL), w.register(appURL)
	access, first := w.login(c)
	for name, response := range map[string]*http.Response{
		"another client":   c.refresh(w.Server, first, url.Values{"client_id": {other.id}}),
		"another resource": c.refresh(w.Server, first, url.Values{"resource": {"https://other.example.com/mcp"}}),
		"an access token":  c.refresh(w.Server, access, nil),
		"a secret":         c.refresh(w.Server, first, url.Values{"client_secret": {"x"}}),
	} {
		if response.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
	access, second := tokensOf(t, c.refresh(w.Server, first, nil))
	if !isValid(t, w.Server, access) { // which is remembered
		t.Error("the refreshed access token is not valid")
	}
	if response := c.refresh(w.Server, first, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a used refresh token: %s", response.Status)
	}
	if response := c.refresh(w.Server, second, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("after a reuse the newest refresh token gets %s", response.Status)
	}
	if isValid(t, w.Server, access) || isValid(t, w.replica(), access) {
		t.Error("after a reuse the access token is still valid")
	}
	if last := w.events[len(w.events)-1]; last.Action != Revoked || last.User != "aki@example.com" {
		t.Errorf("recorded %+v", last)
	}
}

// TestHostileBrowsers: a login belongs to the browser that was shown the consent page, and cannot be taken over.
func TestHostileBrowsers(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	victim, attacker := newBrowser(), newBrowser()
	form := answer(t, attacker.get(w.Server, c.query(nil)))
	answer(t, victim.get(w.Server, c.query(nil)))
	refused := func(name string, response *http.Response) {
		t.Helper()
		if response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
			t.Errorf("%s: %s, redirected to %q", name, response.Status, response.Header.Get("Location"))
		}
	}
	refused("the form of another browser", victim.post(w.Server, consentPath, form))
	refused("no cookie", newBrowser().post(w.Server, consentPath, form))
	changed := url.Values{"answer": {"yes"}, "proof": form["proof"], "request": {form.Get("request") + "AA"}}
	refused("a changed request", attacker.post(w.Server, consentPath, changed))
	refused("nothing", victim.post(w.Server, consentPath, url.Values{"answer": {"yes"}}))
	r := httptest.NewRequest(http.MethodPost, consentPath, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	refused("a page of another site", attacker.send(w.Server, r))

	callback := w.provider.login(t, attacker.post(w.Server, consentPath, form).Header.Get("Location"))
	refused("another browser's callback", victim.get(w.Server, callback))
	refused("an unknown state", attacker.get(w.Server, strings.Replace(callback, "state=", "state=X", 1)))
	refused("another issuer", attacker.get(w.Server, callback+"&iss=https%3A%2F%2Fevil.example"))

	form = answer(t, attacker.get(w.Server, c.query(nil)))
	callback = w.provider.login(t, attacker.post(w.Server, consentPath, form).Header.Get("Location"))
	if got := parameters(t, attacker.get(w.Server, callback), appURL); got.Get("code") == "" {
		t.Fatalf("the login of the browser itself fails: %v", got)
	}
	refused("the callback a second time", attacker.get(w.Server, callback))

	form = answer(t, attacker.get(w.Server, c.query(nil)))
	w.ahead.Store(int64(loginLifetime + time.Second))
	refused("an old page", attacker.post(w.Server, consentPath, form))
}

// TestHostileStates: two logins of one browser cannot be mixed.
func TestHostileStates(t *testing.T) {
	w := newWorld(t)
	one, two, b := w.register(appURL), w.register("https://evil.example/callback"), newBrowser()
	locations := []string{}
	for _, c := range []*client{one, two} {
		response := b.post(w.Server, consentPath, answer(t, b.get(w.Server, c.query(nil))))
		locations = append(locations, w.provider.login(t, response.Header.Get("Location")))
	}
	first, _ := url.Parse(locations[0])
	second, _ := url.Parse(locations[1])
	mixed := second.Query()
	mixed.Set("code", first.Query().Get("code"))
	got := parameters(t, b.get(w.Server, callbackPath+"?"+mixed.Encode()), two.redirect)
	if got.Has("code") {
		t.Errorf("the code of one login finishes another: %v", got)
	}
}

// TestHostileNames: what a client calls itself cannot change the page, and the page cannot be framed.
func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "</style><script>", "{{.Proof}}", "a\u202eb\u2066c", "a\x00b\nc",
		strings.Repeat("x", 10_000),
	} {
		data, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{appURL}})
		if err != nil {
			t.Fatal(err)
		}
		w.registrations = attempts.New()
		response := newBrowser().send(w.Server, httptest.NewRequest(http.MethodPost, registerPath, strings.NewReader(string(data))))
		c := &client{id: members(t, response)["client_id"].(string), redirect: appURL, verifier: "v"}
		response = newBrowser().get(w.Server, c.query(nil))
		policy, text := response.Header.Get("Content-Security-Policy"), body(t, response)
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "unsafe") || response.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("the page's policy: %q", policy)
		}
		if strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.ContainsAny(text, "\u202e\u2066\x00") ||
			strings.Count(text, "</style>") != 1 || len(text) > 10_000 {
			t.Errorf("%.40q gets into the page:\n%.3000s", name, text)
		}
	}
}

// TestHostileRegistrations: floods and odd metadata.
func TestHostileRegistrations(t *testing.T) {
	w := newWorld(t)
	send := func(b *browser, text string) *http.Response {
		return b.send(w.Server, httptest.NewRequest(http.MethodPost, registerPath, strings.NewReader(text)))
	}
	for name, text := range map[string]string{
		"no JSON": "x", "a list": "[]", "null": "null", "no redirects": `{}`, "empty redirects": `{"redirect_uris": []}`,
		"duplicate": `{"redirect_uris": ["https://a.example/"], "redirect_uris": ["https://b.example/"]}`,
		"plain":     `{"redirect_uris": ["http://a.example/"]}`, "script": `{"redirect_uris": ["javascript:alert(1)"]}`,
		"fragment": `{"redirect_uris": ["https://a.example/#x"]}`, "no grant": `{"redirect_uris": ["https://a.example/"], "grant_types": ["implicit"]}`,
		"many":     `{"redirect_uris": ["https://a.example/"` + strings.Repeat(`,"https://a.example/"`, maxRedirects) + `]}`,
		"huge":     `{"redirect_uris": ["https://a.example/"], "x": "` + strings.Repeat("x", maxMetadata) + `"}`,
		"enormous": `{"x": "` + strings.Repeat("x", maxForm) + `"}`, "deep": strings.Repeat("[", 15_000),
	} {
		w.registrations = attempts.New()
		response := send(newBrowser(), text)
		if response.StatusCode/100 != 4 || members(t, response)["error"] == "" {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
	w.registrations = attempts.New()
	refused := 0
	for range 50 {
		if response := send(newBrowser(), `{"redirect_uris": ["https://a.example/"]}`); response.StatusCode == http.StatusTooManyRequests {
			refused++
			if response.Header.Get("Retry-After") == "" {
				t.Error("a refused registration does not say when to try again")
			}
		}
	}
	if refused < 30 {
		t.Errorf("only %d of 50 registrations of one address were refused", refused)
	}
}

// TestHostileRegistrationStore: the store of clients is bounded, and clients that people use stay.
func TestHostileRegistrationStore(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	w.login(c)
	w.fill(maxClients - 1)
	if next := w.register(appURL); next.id == "" || w.count("oauth_client") > maxClients {
		t.Errorf("%d clients are stored", w.count("oauth_client"))
	}
	if m, err := w.clients.find(t.Context(), c.id); m == nil || err != nil {
		t.Errorf("the used client made room for a new one: %v", err)
	}
	w.ahead.Store(int64(unusedAge + time.Minute))
	w.register(appURL)
	if n := w.count("oauth_client"); n != 2 {
		t.Errorf("%d clients are left after a day, want the used one and the new one", n)
	}
}

// TestHostileDocuments: a client ID metadata document must be its client's own, small and plain JSON.
func TestHostileDocuments(t *testing.T) {
	w := newWorld(t)
	good := `{"client_id": "` + documentURL + `", "client_name": "Document", "redirect_uris": ["` + appURL + `"]}`
	var status int
	var kind, text string
	header := http.Header{}
	w.sites = func(*http.Request) (*http.Response, error) {
		h := header.Clone()
		h.Set("Content-Type", kind)
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
	c := &client{id: documentURL, redirect: appURL, verifier: strings.Repeat("v", 43), state: "s"}
	try := func() *http.Response {
		w.documents, w.registrations = newDocuments(w.options.Documents, w.options.Now), attempts.New()
		return newBrowser().get(w.Server, c.query(nil))
	}
	status, kind, text = 200, "application/json; charset=utf-8", good
	response := try()
	if page := body(t, response); response.StatusCode != http.StatusOK || !strings.Contains(page, "client.example.com") {
		t.Fatalf("the document's own host is not shown: %s %s", response.Status, page)
	}
	access, _ := w.login(c)
	if !isValid(t, w.Server, access) || w.sent != 1 {
		t.Errorf("a client with a document cannot log in, or its document was fetched %d times", w.sent)
	}
	for name, change := range map[string]func(){
		"another client":    func() { text = strings.Replace(good, "/client.json", "/other.json", 1) },
		"no name":           func() { text = strings.Replace(good, `"Document"`, `""`, 1) },
		"a secret":          func() { text = strings.Replace(good, "{", `{"token_endpoint_auth_method": "client_secret_post",`, 1) },
		"huge":              func() { text = strings.Replace(good, "{", `{"x": "`+strings.Repeat("x", maxMetadata)+`",`, 1) },
		"HTML":              func() { kind = "text/html" },
		"not found":         func() { status = 404 },
		"redirect":          func() { status = 302; header.Set("Location", "http://169.254.169.254/") },
		"no redirect URI":   func() { text = strings.Replace(good, appURL, "http://evil.example/", 1) },
		"another URI":       func() { text = strings.Replace(good, appURL, "https://evil.example/", 1) },
		"duplicate members": func() { text = strings.Replace(good, "{", `{"client_id": "x",`, 1) },
	} {
		status, kind, text, header = 200, "application/json", good, http.Header{}
		change()
		if response := try(); response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
			t.Errorf("%s: %s, redirected to %q", name, response.Status, response.Header.Get("Location"))
		}
	}
	status, kind, text, header, w.sent = 500, "", "", http.Header{}, 0
	try()
	for range 50 {
		newBrowser().get(w.Server, c.query(nil))
	}
	if w.sent != 1 {
		t.Errorf("a document that cannot be had was asked for %d times", w.sent)
	}
	w.sent = 0
	for i := range 50 {
		c.id = fmt.Sprintf("https://client.example.com/%d", i)
		newBrowser().get(w.Server, c.query(nil))
	}
	if w.sent > 10 {
		t.Errorf("one address caused %d requests to other sites", w.sent)
	}
}

// TestHostileDocumentAddresses: hako asks no private address for a document, whatever the client ID.
func TestHostileDocumentAddresses(t *testing.T) {
	site, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int64
	go func() {
		for {
			conn, err := site.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = site.Close() })
	w := newWorld(t, func(o *Options) { o.Documents = nil })
	port := site.Addr().String()[strings.LastIndex(site.Addr().String(), ":"):]
	for _, host := range []string{
		"127.0.0.1" + port, "localhost" + port, "[::1]" + port, "[::ffff:127.0.0.1]" + port, "169.254.169.254", "10.0.0.1", "[fe80::1]",
		"0.0.0.0" + port, "0177.0.0.1" + port, "2130706433" + port, "user@127.0.0.1" + port,
	} {
		w.registrations = attempts.New()
		c := &client{id: "https://" + host + "/client.json", redirect: appURL, verifier: "v"}
		if response := newBrowser().get(w.Server, c.query(nil)); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", host, response.Status)
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections to this machine for documents", n)
	}
	for _, id := range []string{
		"http://client.example.com/client.json", "https://client.example.com", "https://client.example.com/",
		"https://client.example.com/a/../b", "https://client.example.com/a#b", "https://u:p@client.example.com/a",
	} {
		c := &client{id: id, redirect: appURL, verifier: "v"}
		if response := newBrowser().get(w.Server, c.query(nil)); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", id, response.Status)
		}
	}
}

// TestHostileAudience: a token of another resource or provider is not valid, also if the store is the same.
func TestHostileAudience(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	access, refresh := w.login(c)
	for name, change := range map[string]func(*Options){
		"another resource": func(o *Options) { o.Resource = "https://hako.example.com/other" },
		"another provider": func(o *Options) { o.Provider.Issuer = "https://other.example.com" },
	} {
		other := w.replica(change)
		if isValid(t, other, access) {
			t.Errorf("%s: the token is valid", name)
		}
		form := url.Values{"resource": {other.options.Resource}}
		if response := c.refresh(other, refresh, form); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: a refresh gets %s", name, response.Status)
		}
	}
	if !isValid(t, w.Server, access) {
		t.Error("the token is not valid at its own resource")
	}
}

// TestHostileGuesses: an address that guesses codes is refused after a while.
func TestHostileGuesses(t *testing.T) {
	w := newWorld(t)
	c, refused := w.register(appURL), false
	for range 20 {
		refused = refused || c.exchange(w.Server, newToken(kindCode), nil).StatusCode == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("20 guesses were all looked up")
	}
}

// TestHostileRevocations: guesses neither reach the store without limit nor empty the cache of verified tokens.
func TestHostileRevocations(t *testing.T) {
	w := newWorld(t)
	c, other := w.register(appURL), w.register(appURL)
	access, refresh := w.login(c)
	if !isValid(t, w.Server, access) {
		t.Fatal("the token is not valid")
	}
	revoke := func(token string, by *client) int {
		return newBrowser().post(w.Server, revokePath, url.Values{"token": {token}, "client_id": {by.id}}).StatusCode
	}
	c.exchange(w.Server, newToken(kindCode), nil)
	revoke(newToken(kindAccess), c)
	revoke(refresh, other)
	if len(w.grants.verified) != 1 {
		t.Error("a guess empties the cache of verified tokens")
	}
	refused := false
	for range 20 {
		refused = refused || revoke(newToken(kindAccess), c) == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("20 guesses were all looked up")
	}
	w.failures = attempts.New()
	if revoke(refresh, c) != http.StatusOK || isValid(t, w.Server, access) {
		t.Error("the client cannot end its own login")
	}
}

// TestHostileRows: damaged rows are no logins, and harm nobody.
func TestHostileRows(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	access, refresh := w.login(c)
	for _, text := range []string{"", "x", "null", "[]", `{"groups": 1}`, strings.Repeat("x", maxDetail+1)} {
		w.exec("UPDATE oauth_grant SET detail = $1", text)
		if isValid(t, w.replica(), access) || c.refresh(w.Server, refresh, nil).StatusCode == http.StatusOK {
			t.Errorf("%.20q is a login", text)
		}
		w.exec("UPDATE oauth_client SET metadata = $1", text)
		if response := newBrowser().get(w.Server, c.query(nil)); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%.20q is a client: %s", text, response.Status)
		}
	}
	access, _ = w.login(w.register(appURL))
	for _, change := range []string{"person = 'a\u202eki'", "person = ''", "tenant = 'a\ncme'"} {
		w.exec("UPDATE oauth_grant SET " + change)
		if isValid(t, w.replica(), access) {
			t.Errorf("%q is a login", change)
		}
		w.exec("UPDATE oauth_grant SET person = 'aki@example.com', tenant = ''")
	}
	if !isValid(t, w.replica(), access) {
		t.Error("the row as it was is no login")
	}
}

func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{
		`{"client_id": "https://a.example/b", "client_name": "x", "redirect_uris": ["https://a.example/"]}`,
		`{"redirect_uris": ["http://127.0.0.1:1/a", "com.example.app:/x"]}`, `{"redirect_uris": ["http://[::1%25a]:1/"]}`, `null`,
	} {
		f.Add([]byte(seed), "http://127.0.0.1:99/a")
	}
	f.Fuzz(func(t *testing.T, data []byte, redirect string) {
		m, err := parseMetadata(data)
		if err != nil {
			return
		}
		for _, uri := range m.RedirectURIs {
			if !m.allows(uri) {
				t.Errorf("its own %q is not allowed", uri)
			}
		}
		if m.allows(redirect) {
			u, err := url.Parse(redirect)
			if err != nil || strings.ContainsAny(redirect, " \r\n#\\") || u.User != nil {
				t.Errorf("%q is allowed", redirect)
			}
		}
		if again := displayName(m.Name); again != m.Name && !strings.HasSuffix(m.Name, "…") {
			t.Errorf("the name %q is shown as %q", m.Name, again)
		}
	})
}
