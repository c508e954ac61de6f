package registry

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// loginTransport sends the requests of the client of one registry, which names the server that gives tokens for the
// operator's credential. The credential goes to the registry's own site alone, and to the hosts that are configured;
// without one, any server may give a token. It remembers what it sent, so that errors do not repeat it.
type loginTransport struct {
	base     http.RoundTripper
	registry string
	// tokenServers are further hosts that get the credential.
	tokenServers []string

	mu   sync.Mutex
	sent []string // guarded by mu
}

// errTokenServer is the error for a credential that was not sent.
type errTokenServer struct{ registry, host string }

func (e *errTokenServer) Error() string {
	return fmt.Sprintf("%s wants the login to go to %s, which is of another site: if that is right, name it in "+
		"registries.%s.tokenServers of the configuration", e.registry, e.host, e.registry)
}

const (
	// maxForm bounds the form of a login that is looked at, in bytes.
	maxForm = 64 << 10
	// maxSent bounds the values that errors are searched for, minSecret their length in bytes: shorter ones are parts
	// of ordinary words.
	maxSent, minSecret = 64, 6
)

// RoundTrip implements http.RoundTripper.
func (t *loginTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	secrets, isLogin := credentialsOf(r)
	if isLogin && r.URL.Host != "" && !t.mayLogin(r.URL) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &errTokenServer{t.registry, r.URL.Host}
	}
	t.remember(secrets)
	return t.base.RoundTrip(r)
}

// mayLogin reports whether the operator's credential may go to a server.
func (t *loginTransport) mayLogin(u *url.URL) bool {
	return sameSite(u.Host, t.registry) || slices.Contains(t.tokenServers, u.Host) ||
		slices.Contains(t.tokenServers, u.Hostname()) && u.Port() == ""
}

// sameSite reports whether two hosts belong to one domain that somebody has registered (the public suffix list), or are
// the same address and port.
func sameSite(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	domain := func(host string) string {
		registered, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower((&url.URL{Host: host}).Hostname()))
		if err != nil {
			return ""
		}
		return registered
	}
	site := domain(a)
	return site != "" && strings.Trim(site, "0123456789.") != "" && site == domain(b)
}

// credentialsOf returns the secrets in a request, and whether they are the operator's credential, in a Basic header or
// in the form of OAuth 2, and not a token that a server has given for it.
func credentialsOf(r *http.Request) (secrets []string, isLogin bool) {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if value = strings.TrimSpace(value); value != "" {
		secrets = append(secrets, value)
	}
	if strings.EqualFold(scheme, "Basic") {
		isLogin = true
		if pair, err := base64.StdEncoding.DecodeString(value); err == nil {
			_, password, _ := strings.Cut(string(pair), ":")
			secrets = append(secrets, string(pair), password)
		}
	}
	if r.GetBody == nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return secrets, isLogin
	}
	body, err := r.GetBody()
	if err != nil {
		return secrets, true
	}
	defer body.Close()
	text, _ := io.ReadAll(io.LimitReader(body, maxForm))
	form, _ := url.ParseQuery(string(text)) // what cannot be parsed is no secret of ours
	return append(secrets, form.Get("password"), form.Get("refresh_token")), true
}

func (t *loginTransport) remember(secrets []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, secret := range secrets {
		if len(secret) < minSecret || slices.Contains(t.sent, secret) {
			continue
		}
		if t.sent = append(t.sent, secret); len(t.sent) > maxSent {
			t.sent = t.sent[1:]
		}
	}
}

// mask replaces in the text of an error what was sent to a server, which may have repeated it.
func (t *loginTransport) mask(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, secret := range t.sent {
		for _, form := range []string{secret, url.QueryEscape(secret), strings.Trim(strconv.Quote(secret), `"`)} {
			text = strings.ReplaceAll(text, form, "(masked)")
		}
	}
	return text
}

// mask is loginTransport.mask for all registries.
func (c *Client) mask(text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.logins {
		text = t.mask(text)
	}
	return text
}

// checkTokenServer returns an error for what is no host of Host.TokenServers.
func checkTokenServer(host string) error {
	if u := (&url.URL{Scheme: "https", Host: host}); host == "" || u.Hostname() == "" || strings.ContainsAny(host, "/@?# ") {
		return fmt.Errorf("the token server %q is neither HOST nor HOST:PORT", host)
	}
	return nil
}
