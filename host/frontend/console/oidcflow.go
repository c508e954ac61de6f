package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/internal/address"
)

const (
	// flowCookie is the short name of the cookie with a flow. flowTime bounds the time at the provider.
	flowCookie = "console-login"
	flowTime   = 10 * time.Minute
)

// flow is a login at the provider that has begun. It is in a cookie of the browser, so that only this browser can
// finish it, at any process.
type flow struct {
	issuer.Login
	// Begun is in seconds since 1970.
	Begun int64 `json:"t"`
}

func (f *flow) encode() string {
	data, err := json.Marshal(f)
	if err != nil {
		return "" // it is plain text
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseFlow parses a cookie. It returns nil for an invalid one.
func parseFlow(text string) *flow {
	data, err := base64.RawURLEncoding.DecodeString(text)
	f := new(flow)
	if err != nil || json.Unmarshal(data, f) != nil || f.State == "" || f.Nonce == "" || f.Verifier == "" {
		return nil
	}
	return f
}

// oidcLogin redirects to the provider.
func (c *Console) oidcLogin(w http.ResponseWriter, q *request) error {
	p := c.logins.Load().oidc
	if p == nil {
		return notFound("identity provider", "oidc")
	}
	if address.Hostname(q.Host) != address.Hostname(q.site.base.Host) {
		// The cookie must be for the name to which the provider redirects.
		http.Redirect(w, q.Request, q.site.base.String()+Path+"api/oidc/login", http.StatusFound)
		return nil
	}
	f := &flow{Login: issuer.NewLogin(), Begun: c.now().Unix()}
	target, err := p.client.Begin(q.Context(), f.Login)
	if err == nil {
		// The provider redirects from another site, where a strict cookie is not sent.
		q.site.setCookie(w, q.Request, flowCookie, f.encode(), int(flowTime.Seconds()), http.SameSiteLaxMode)
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, q.Request, target, http.StatusFound)
		return nil
	}
	c.logger.Error("the console's OpenID Connect provider cannot be used", "err", err)
	c.back(w, q, "unavailable")
	return nil
}

// oidcCallback finishes a login after the provider's redirect.
func (c *Console) oidcCallback(w http.ResponseWriter, q *request) error {
	p := c.logins.Load().oidc
	if p == nil {
		return notFound("identity provider", "oidc")
	}
	f := parseFlow(q.site.cookieValue(q.Request, flowCookie))
	q.site.setCookie(w, q.Request, flowCookie, "", -1, http.SameSiteLaxMode)
	succeeded, wait := c.attempts.Begin(q.address, c.now()) // the cookie proves nothing, because anybody can make one
	if wait > 0 {
		c.back(w, q, "limited")
		return nil
	}
	if !f.belongs(q, p.options.Issuer, c.now()) {
		c.failedLogin(q, nil, errors.New("the login did not begin in this browser, or took too long"))
		c.back(w, q, "expired")
		return nil
	}
	if q.param("error") != "" || q.param("code") == "" {
		c.failedLogin(q, nil, errors.New("the provider refused"))
		c.back(w, q, "denied")
		return nil
	}
	person, err := p.identify(q.Context(), q.param("code"), f)
	if err == nil && c.logins.Load().issued.IsBlocked(person.source, person.Name) {
		err = errBlocked
	}
	if err != nil {
		c.logger.Warn("a login at the console's OpenID Connect provider failed", "err", err)
		c.failedLogin(q, person, err)
		c.back(w, q, reasonOf(err))
		return nil
	}
	succeeded()
	if err := c.begin(w, q, &session{Person: *person, address: q.address}); err != nil {
		return err
	}
	c.back(w, q, "")
	return nil
}

// failedLogin records a failed login. person is nil if it is unknown. Texts of the provider go only to hako's log.
func (c *Console) failedLogin(q *request, person *Person, failure error) {
	d := &audit.Operation{Action: "console.login", Detail: map[string]string{"via": viaOIDC}}
	if person != nil {
		q = q.as(&session{Person: *person})
	}
	for _, known := range []error{issuer.ErrProvider, issuer.ErrIdentity, errNoRole} {
		if errors.Is(failure, known) {
			failure = known
		}
	}
	c.note(q, d, audit.OutcomeFailed, failure)
}

// reasonOf returns the reason of a failure for the page.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errNoRole):
		return "role"
	case errors.Is(err, issuer.ErrProvider):
		return "unavailable"
	}
	return "failed"
}

// back redirects to the page, with the reason of a failed login.
func (c *Console) back(w http.ResponseWriter, q *request, reason string) {
	target := Path
	if reason != "" {
		target += "#login=" + reason
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, q.Request, target, http.StatusSeeOther)
}
