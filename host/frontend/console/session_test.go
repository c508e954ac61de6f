package console_test

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
)

const cookieName = "hako-console-8420"

func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, test := range map[string]struct {
		body any
		code string
	}{
		"wrong":              {map[string]string{"token": "hako_wrong"}, "unauthenticated"},
		"nearly":             {map[string]string{"token": secretOf(console.Admin) + "x"}, "unauthenticated"},
		"the hash itself":    {map[string]string{"token": hashOf(secretOf(console.Admin))}, "unauthenticated"},
		"a link that is off": {map[string]string{"link": "x"}, "unauthenticated"},
		"nothing":            {map[string]string{}, "invalid"},
		"both":               {map[string]string{"token": "x", "link": "x"}, "invalid"},
		"unknown member":     {map[string]string{"token": "x", "role": "admin"}, "invalid"},
		"two values":         {`{"token":"x"}{"token":"y"}`, "invalid"},
		"no JSON":            {`token=x`, "invalid"},
		"a list":             {`["token"]`, "invalid"},
		"too large":          {`{"token":"` + strings.Repeat("x", 20<<10) + `"}`, "too_large"},
	} {
		b := w.browser()
		b.address = "198.51.100." + fmt.Sprint(len(name)) + ":1"
		if got := b.post("login", test.body); got.code() != test.code || len(b.cookies) > 0 {
			t.Errorf("%s: %d %s %v", name, got.status, got.body, b.cookies)
		}
	}
	b := w.as(console.Approver)
	var session struct {
		User struct {
			Name, Role, Via string
			Expires         time.Time
		}
		CSRF, Version string
	}
	b.get("session").into(t, &session)
	if session.User.Name != "approver" || session.User.Role != "approver" || session.User.Via != "token" ||
		session.CSRF != b.csrf || session.Version != "1.2.3" ||
		!session.User.Expires.Equal(w.clock.Now().Add(12*time.Hour)) {
		t.Errorf("session = %+v", session)
	}
	for _, want := range []string{"console.login failed  198.51.100.5", "console.login begun approver 203.0.113.7", "console.login ok approver 203.0.113.7"} {
		if !strings.Contains(w.records(), want) {
			t.Errorf("the audit log has no %q:\n%s", want, w.records())
		}
	}
}

func TestCookie(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		site   console.Site
		tls    bool
		origin string
		prefix string
	}{
		"this machine": {console.Site{Local: "http://127.0.0.1:8420"}, false, "", cookieName + "="},
		"behind a proxy": {console.Site{URL: "https://hako.example.com", Local: "http://127.0.0.1:8420"}, false, "",
			"__Host-hako-console="},
		"past the proxy": {console.Site{URL: "https://hako.example.com", Local: "http://127.0.0.1:8420"}, false,
			"http://127.0.0.1:8420", cookieName + "="},
		"behind a proxy that changes the host": {console.Site{URL: "https://hako.example.com", Local: "http://127.0.0.1:8420"},
			false, "https://hako.example.com", "__Host-hako-console="},
		"with TLS": {console.Site{Local: "https://127.0.0.1:8420"}, true, "", "__Host-hako-console="},
	} {
		w := newWorld(t, func(_ *world, o *console.Options) { o.Site = test.site })
		got := w.browser().do("POST", "login", map[string]string{"token": secretOf(console.Viewer)},
			func(r *http.Request) {
				r.Header.Del("Origin")
				if test.origin != "" {
					r.Header.Set("Origin", test.origin)
				}
				if test.tls {
					r.TLS = new(tls.ConnectionState)
				}
			})
		cookie := got.header.Get("Set-Cookie")
		if !strings.HasPrefix(cookie, test.prefix) || !strings.Contains(cookie, "; HttpOnly; ") ||
			!strings.Contains(cookie, "SameSite=Strict") ||
			strings.Contains(cookie, "Secure") != strings.HasPrefix(test.prefix, "__Host-") ||
			strings.Contains(cookie, "Domain") {
			t.Errorf("%s: %s", name, cookie)
		}
	}
}

// TestHostileBodies: a body whose meaning depends on who reads it opens nothing.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	secret := secretOf(console.Viewer)
	for name, body := range map[string]string{
		"a key twice":    `{"token":"x","token":"` + secret + `"}`,
		"an escaped key": `{"token":"x","t\u006fken":"` + secret + `"}`,
		"an unknown key": `{"token":"` + secret + `","role":"admin"}`,
		"two values":     `{"token":"` + secret + `"}{}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newWorld(t, nil).browser().do("POST", "login", nil, func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(body))
			})
			if got.code() != "invalid" || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// TestFixation: a secret that somebody knew before the login opens nothing after it.
func TestFixation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	victim := w.browser()
	victim.cookies[cookieName] = "planted"
	if got := victim.post("login", map[string]string{"token": secretOf(console.Admin)}); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	if victim.cookies[cookieName] == "planted" {
		t.Error("the secret is the one that was there before")
	}
	attacker := w.browser()
	attacker.cookies[cookieName] = "planted"
	if got := attacker.get("overview"); got.status != http.StatusUnauthorized {
		t.Errorf("with the planted secret: %d", got.status)
	}
	first := victim.cookies[cookieName]
	victim.post("login", map[string]string{"token": secretOf(console.Admin)})
	attacker.cookies[cookieName] = first
	if got := attacker.get("overview"); got.status != http.StatusUnauthorized {
		t.Errorf("with the secret from before the second login: %d", got.status)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*world, *browser)
		status int
	}{
		"in use": {func(w *world, b *browser) {
			for range 13 {
				w.clock.add(50 * time.Minute)
				b.get("overview")
			}
		}, http.StatusOK},
		"idle":        {func(w *world, _ *browser) { w.clock.add(time.Hour) }, http.StatusUnauthorized},
		"nearly idle": {func(w *world, _ *browser) { w.clock.add(time.Hour - time.Second) }, http.StatusOK},
		"lifetime": {func(w *world, b *browser) {
			for range 15 {
				w.clock.add(50 * time.Minute)
				b.get("overview")
			}
		}, http.StatusUnauthorized},
		"logged out": {func(_ *world, b *browser) {
			kept := b.cookies[cookieName]
			b.post("logout", struct{}{})
			b.cookies[cookieName] = kept
		}, http.StatusUnauthorized},
		"logged out elsewhere": {func(w *world, _ *browser) {
			w.as(console.Admin).post("logout",
				map[string]bool{"everywhere": true})
		}, http.StatusUnauthorized},
		"another logs out": {func(w *world, _ *browser) {
			w.as(console.Viewer).post("logout",
				map[string]bool{"everywhere": true})
		}, http.StatusOK},
		"one of two logs out": {func(w *world, _ *browser) { w.as(console.Admin).post("logout", struct{}{}) },
			http.StatusOK},
		"token removed": {func(w *world, _ *browser) { w.set(tokenOf(console.Viewer)) },
			http.StatusUnauthorized},
		"token replaced": {func(w *world, _ *browser) {
			other := tokenOf(console.Admin)
			other.Hash = hashOf("another")
			w.set(other)
		}, http.StatusUnauthorized},
		"token expired": {func(w *world, _ *browser) {
			other := tokenOf(console.Admin)
			other.Expires = w.clock.Now().Add(time.Minute)
			w.set(other)
			w.clock.add(time.Minute)
		}, http.StatusUnauthorized},
		"role taken": {func(w *world, _ *browser) {
			other := tokenOf(console.Admin)
			other.Role = "viewer"
			w.set(other)
		}, http.StatusForbidden},
		"too many": {func(w *world, _ *browser) {
			for range 20 {
				w.clock.add(time.Second)
				w.as(console.Admin)
			}
		}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			b := w.as(console.Admin)
			test.change(w, b)
			if got := b.get("sessions"); got.status != test.status {
				t.Errorf("%d %s, want %d", got.status, got.body, test.status)
			}
		})
	}
}

// TestStoreCannotBeWritten: who is logged in sees what is wrong, although it cannot be noted that the session is in
// use.
func TestStoreCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(),
			`CREATE TRIGGER full BEFORE UPDATE ON console_session BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.add(30 * time.Minute)
	if got := b.get("overview"); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestAuditOptional: what cannot be recorded is done only where the configuration in force prefers that.
func TestAuditOptional(t *testing.T) {
	t.Parallel()
	optional := false
	w := newWorld(t, func(w *world, o *console.Options) {
		o.Journal = &journal{Log: w.log, Reader: audit.Dir(w.logDir), fail: errors.New("the disk is full")}
		o.Settings = settings{auditOptional: func() bool { return optional }}
	})
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		if got := w.browser().post("login", map[string]string{"token": secretOf(console.Viewer)}); got.status != want {
			t.Errorf("optional %t: %d %s, want %d", optional, got.status, got.body, want)
		}
		optional = true
	}
}

// set changes who may log in.
func (w *world) set(tokens ...bearer.Token) {
	w.t.Helper()
	w.reconfigure(console.Logins{Tokens: tokens})
}

func (w *world) reconfigure(l console.Logins) {
	w.t.Helper()
	put, err := w.Reconfigure(console.Site{Local: "http://127.0.0.1:8420"}, l)
	if err != nil {
		w.t.Fatal(err)
	}
	put()
}

// TestReconfigureSite: another name and another proxy hold from the next request on, and an error changes nothing.
func TestReconfigureSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Admin)
	under := func(host string) int {
		return b.do("GET", "session", nil, func(r *http.Request) { r.Host = host }).status
	}
	site := console.Site{Local: "http://127.0.0.1:8420", Hosts: []string{"hako.internal"}}
	if _, err := w.Reconfigure(console.Site{URL: "hako.internal"}, console.Logins{}); err == nil ||
		under("hako.internal") != http.StatusForbidden {
		t.Errorf("a malformed address: %v", err)
	}
	put, err := w.Reconfigure(site, console.Logins{Tokens: []bearer.Token{tokenOf(console.Admin)}})
	if err != nil || under("hako.internal") != http.StatusForbidden {
		t.Fatalf("in force before it is put there, or %v", err)
	}
	put()
	if got := under("hako.internal"); got != http.StatusOK {
		t.Errorf("under the new name: %d", got)
	}
	if got := under("hako.example.com"); got != http.StatusForbidden {
		t.Errorf("under another name: %d", got)
	}
}

// TestStreamsEndWithTheRole: whoever loses the token, or gets another role, sees nothing more.
func TestStreamsEndWithTheRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	server := w.serve()
	viewer, approver, admin := w.as(console.Viewer).watch(server), w.as(console.Approver).watch(server),
		w.as(console.Admin).watch(server)
	other := tokenOf(console.Approver)
	other.Role = "viewer"
	w.set(tokenOf(console.Admin), other)
	for _, e := range []*events{viewer, approver} {
		if data := e.expect("end"); data != `{"reason":"revoked"}` {
			t.Errorf("end: %s", data)
		}
	}
	w.traffic.CallEnded(ended("greet", pipeline.OK, time.Millisecond))
	admin.expect("call")
}

// TestStoreKeepsNoSecrets: who reads the store cannot log in with what is there.
func TestStoreKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Admin)
	link, err := console.NewLink(t.Context(), w.store, "aki", w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	err = w.store.View(t.Context(), func(tx *sql.Tx) error {
		for _, query := range []string{
			`SELECT id || person || via || source || proof || membership || address FROM console_session`,
			`SELECT id || person FROM console_link`,
		} {
			var row string
			if err := tx.QueryRowContext(t.Context(), query).Scan(&row); err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{b.cookies[cookieName], b.csrf, link, secretOf(console.Admin)} {
		if strings.Contains(strings.Join(rows, "\n"), secret) {
			t.Errorf("the store has a secret: %s", rows)
		}
	}
}

// TestReplicas: whoever has logged in at one process is known to the others over the store, and logs out of all.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(*testing.T) string{
		"a directory": func(t *testing.T) string { return filepath.Join(t.TempDir(), "store") },
		"PostgreSQL":  func(t *testing.T) string { return postgrestest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := place(t)
			first, second := newWorldIn(t, at, nil), newWorldIn(t, at, nil)
			secret, err := console.NewLink(t.Context(), first.store, "aki", first.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			b := second.browser()
			b.address = "127.0.0.1:1"
			if got := b.post("login", map[string]string{"link": secret}); got.status != http.StatusOK {
				t.Fatalf("with a link of the first: %d %s", got.status, got.body)
			}
			for range 25 {
				first.as(console.Viewer)
			}
			var list struct{ Items []struct{ User string } }
			b.world = first
			if b.get("sessions").into(t, &list); len(list.Items) != 21 {
				t.Errorf("%d sessions, want that of aki and the last 20 of the viewer", len(list.Items))
			}
			go func() { _ = second.Run(t.Context()) }()
			b.world = second
			watching := b.watch(second.serve())
			kept := maps.Clone(b.cookies)
			b.world = first
			if got := b.post("logout", map[string]bool{"everywhere": true}); got.status != http.StatusOK {
				t.Errorf("log out at the first: %d %s", got.status, got.body)
			}
			watching.until("end", `{"reason":"logout"}`)
			b.world, b.cookies = second, kept
			if got := b.get("overview"); got.status != http.StatusUnauthorized {
				t.Errorf("at the second after that: %d", got.status)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	proxied := func(_ *world, o *console.Options) { o.Site.URL = "https://hako.example.com" }
	for name, test := range map[string]struct {
		change  func(*world, *console.Options)
		address string
		later   time.Duration
		spoil   string
		status  int
	}{
		"from this machine":             {nil, "127.0.0.1:1234", 0, "", http.StatusOK},
		"over IPv6":                     {nil, "[::1]:1234", 9 * time.Minute, "", http.StatusOK},
		"from this machine, past https": {proxied, "127.0.0.1:1234", 0, "", http.StatusOK},
		"from another machine":          {nil, "192.0.2.1:1234", 0, "", http.StatusUnauthorized},
		"too late":                      {nil, "127.0.0.1:1234", 10 * time.Minute, "", http.StatusUnauthorized},
		"wrong":                         {nil, "127.0.0.1:1234", 0, "x", http.StatusUnauthorized},
	} {
		w := newWorld(t, test.change)
		secret, err := console.NewLink(t.Context(), w.store, "aki", w.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		w.clock.add(test.later)
		b := w.browser()
		b.address = test.address
		if got := b.post("login", map[string]string{"link": secret + test.spoil}); got.status != test.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if test.status != http.StatusOK {
			continue
		}
		if got := b.get("sessions"); !strings.Contains(got.body, `"user":"aki","role":"admin","via":"link"`) {
			t.Errorf("%s: %s", name, got.body)
		}
		if got := b.post("login", map[string]string{"link": secret}); got.status != http.StatusUnauthorized {
			t.Errorf("%s: used twice: %d", name, got.status)
		}
	}
	if got := console.LinkURL("http://127.0.0.1:8420", "S"); got != "http://127.0.0.1:8420/console/#link=S" {
		t.Error(got)
	}
}

func TestBruteForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	try := func(address, secret string) *answer {
		b := w.browser()
		b.address = address
		return b.post("login", map[string]string{"token": secret})
	}
	for i := range 10 {
		if got := try("192.0.2.1:1", "guess"); got.status != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d", i, got.status)
		}
	}
	got := try("192.0.2.1:2", "guess")
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "10" ||
		!strings.Contains(got.body, `"retryAfter":10`) {
		t.Errorf("after ten: %d, Retry-After %q, %s", got.status, got.header.Get("Retry-After"), got.body)
	}
	if got := try("192.0.2.1:3", secretOf(console.Admin)); got.status != http.StatusTooManyRequests {
		t.Errorf("the right one among guesses: %d", got.status)
	}
	if got := try("192.0.2.2:1", secretOf(console.Admin)); got.status != http.StatusOK {
		t.Errorf("somebody else: %d", got.status)
	}
	w.clock.add(10 * time.Second)
	if got := try("192.0.2.1:4", secretOf(console.Admin)); got.status != http.StatusOK {
		t.Errorf("later: %d", got.status)
	}
	if n := strings.Count(w.records(), "console.login failed"); n != 10 {
		t.Errorf("%d failures are recorded, want those that were looked at", n)
	}
}

func TestBruteForceFromManyAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	statuses := map[int]int{}
	for i := range 300 {
		b := w.browser()
		b.address = fmt.Sprintf("[2001:db8:%x::%x]:1", i, i)
		statuses[b.post("login", map[string]string{"token": "guess"}).status]++
	}
	if statuses[http.StatusUnauthorized] != 200 || statuses[http.StatusTooManyRequests] != 100 {
		t.Errorf("%v, want 200 attempts of all together", statuses)
	}
	if n := w.Addresses(); n > 200 {
		t.Errorf("%d addresses are remembered", n)
	}
	w.clock.add(time.Hour)
	for i := range 15 {
		b := w.browser()
		b.address = fmt.Sprintf("[2001:db8:1::%x]:1", i)
		statuses[b.post("login", map[string]string{"token": "guess"}).status]++
	}
	if statuses[http.StatusTooManyRequests] != 105 {
		t.Errorf("%v: one network of IPv6 has more attempts than one address of IPv4", statuses)
	}
	for range 30 { // logins that succeed do not count
		b := w.browser()
		b.address = "192.0.2.9:1"
		if got := b.post("login", map[string]string{"token": secretOf(console.Viewer)}); got.status != http.StatusOK {
			t.Fatal(got.status)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) { o.Site.Proxies = []string{"10.0.0.0/8", "192.0.2.1"} })
	for name, test := range map[string]struct{ remote, forwarded, want string }{
		"direct":                     {"203.0.113.7:1", "", "203.0.113.7"},
		"somebody claims a proxy":    {"203.0.113.7:1", "127.0.0.1", "203.0.113.7"},
		"one proxy":                  {"10.0.0.1:1", "198.51.100.9", "198.51.100.9"},
		"two proxies":                {"10.0.0.1:1", "198.51.100.9, 192.0.2.1", "198.51.100.9"},
		"a claim before the proxies": {"10.0.0.1:1", "127.0.0.1, 198.51.100.9, 10.1.1.1", "198.51.100.9"},
		"nonsense":                   {"10.0.0.1:1", "198.51.100.9, <script>", "10.0.0.1"},
		"nothing":                    {"10.0.0.1:1", "", "10.0.0.1"},
	} {
		b := w.browser()
		b.address = test.remote
		b.do("POST", "login", map[string]string{"token": secretOf(console.Admin)}, func(r *http.Request) {
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
		})
		if got := b.get("sessions"); !strings.Contains(got.body, `"address":"`+test.want+`"`) ||
			!strings.Contains(got.body, `"self":true`) {
			t.Errorf("%s: %s, want %s", name, got.body, test.want)
		}
		b.post("logout", map[string]bool{"everywhere": true})
	}
}

// TestUnrecordedLogin: nobody is logged in unseen.
func TestUnrecordedLogin(t *testing.T) {
	t.Parallel()
	var log *journal
	w := newWorld(t, func(_ *world, o *console.Options) { log = o.Journal.(*journal) })
	log.fail = fmt.Errorf("the disk is full")
	b := w.browser()
	got := b.post("login", map[string]string{"token": secretOf(console.Admin)})
	if got.status != http.StatusServiceUnavailable || len(b.cookies) > 0 || strings.Contains(got.body, "disk") {
		t.Errorf("%d %s %v", got.status, got.body, b.cookies)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	twice := []bearer.Token{tokenOf(console.Viewer), tokenOf(console.Viewer)}
	for name, test := range map[string]struct {
		logins console.Logins
		want   string
	}{
		"no name": {console.Logins{Tokens: []bearer.Token{{Hash: hashOf("x"), Role: "admin"}}},
			"a token has no name"},
		"a hidden name": {console.Logins{Tokens: []bearer.Token{{Name: "ci\u200b", Hash: hashOf("x"),
			Role: "admin"}}}, "not visible"},
		"a hidden user": {console.Logins{Tokens: []bearer.Token{{Name: "ci", User: " aki", Hash: hashOf("x"),
			Role: "admin"}}}, "begins or ends with a space"},
		"a secret": {console.Logins{Tokens: []bearer.Token{{Name: "ci", Hash: "hako_secret",
			Role: "admin"}}}, `token "ci": its hash is not "sha256:"`},
		"no role": {console.Logins{Tokens: []bearer.Token{{Name: "ci", Hash: hashOf("x"), Role: "root"}}},
			`unknown role "root"`},
		"twice": {console.Logins{Tokens: twice}, `two tokens have the name "viewer-token"`},
		"plain http": {console.Logins{OIDC: &console.OIDC{Issuer: "http://sso.example.com"}},
			"must be an https URL"},
		"no client": {console.Logins{OIDC: &console.OIDC{Issuer: "https://sso.example.com"}},
			"client ID is missing"},
		"no roles": {console.Logins{OIDC: &console.OIDC{Issuer: "https://sso.example.com", ClientID: "x"}},
			"nobody could log in"},
		"wrong roles": {console.Logins{OIDC: &console.OIDC{Issuer: "https://sso.example.com", ClientID: "x",
			Roles: map[console.Role]policy.People{"root": {Users: []string{"a"}}, "admin": {Users: []string{"b"}}}}},
			`unknown role "root"`},
	} {
		if _, err := w.Reconfigure(console.Site{Local: "http://127.0.0.1:8420"}, test.logins); err == nil ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hako_secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, url := range []string{"", "hako.example.com", "ftp://hako.example.com", "https://hako.example.com/console", "https://user@hako.example.com", "https://"} {
		if err := (console.Site{Local: url}).Check(); err == nil {
			t.Errorf("the URL %q is taken", url)
		}
	}
	o := &console.Options{Host: w.host, Store: w.store, Approvals: w.approvals, Traffic: w.traffic,
		Site: console.Site{Local: "http://localhost:1", Proxies: []string{"everybody"}}}
	if _, err := console.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Settings are needed") {
		t.Errorf("no settings: %v", err)
	}
	o.Settings = settings{}
	if _, err := console.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "everybody") {
		t.Errorf("proxies: %v", err)
	}
}
