package console

import (
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/internal/address"
)

// sessionCookie is the short name of the cookie with a session's secret.
const sessionCookie = "console"

// sessionJSON holds who is logged in and which logins exist.
type sessionJSON struct {
	User    *userJSON  `json:"user"`
	CSRF    string     `json:"csrf,omitempty"`
	Logins  loginsJSON `json:"logins"`
	Version string     `json:"version"`
}

type userJSON struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Via     string    `json:"via"`
	Groups  []string  `json:"groups"`
	Expires time.Time `json:"expires"`
}

type loginsJSON struct {
	Token bool      `json:"token"`
	OIDC  *oidcJSON `json:"oidc,omitempty"`
}

type oidcJSON struct {
	Name string `json:"name"`
}

func (c *Console) session(q *request) (any, error) { return c.sessionOf(q), nil }

func (c *Console) sessionOf(q *request) *sessionJSON {
	l := c.logins.Load()
	answer := &sessionJSON{Logins: loginsJSON{Token: len(l.tokens) > 0 || l.issued.ForConsole()}}
	if l.oidc != nil {
		answer.Logins.OIDC = &oidcJSON{l.oidc.options.name()}
	}
	if s := q.session; s != nil {
		answer.User = &userJSON{s.Name, s.Role, s.via, append([]string{}, s.Groups...), s.expires.UTC()}
		answer.CSRF, answer.Version = csrf(q.secret), c.options.Build.Version
	}
	return answer
}

// login logs in with a token or the secret of a link.
func (c *Console) login(w http.ResponseWriter, q *request) error {
	var body struct{ Token, Link string }
	if err := q.decode(&body); err != nil {
		return err
	}
	if (body.Token == "") == (body.Link == "") {
		return invalid("a login needs a token or a link")
	}
	succeeded, wait := c.attempts.Begin(q.address, c.now())
	if wait > 0 {
		return faultLimited(wait)
	}
	s := &session{address: q.address}
	var err error
	if body.Token != "" {
		err = c.byToken(q, s, body.Token)
	} else {
		err = c.byLink(q, s, body.Link)
	}
	if err != nil {
		login := &audit.Operation{Action: "console.login", Detail: map[string]string{"via": s.via}}
		c.note(q, login, audit.OutcomeFailed, err)
		return err
	}
	succeeded()
	if err := c.begin(w, q, s); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, c.sessionOf(q))
	return nil
}

func (c *Console) byToken(q *request, s *session, text string) error {
	s.via = viaToken
	t, err := c.logins.Load().byText(q.Context(), text, c.now())
	if err != nil {
		return err
	}
	if t == nil || !slices.Contains(Roles, Role(t.Role)) {
		return faultBadCredentials
	}
	s.Person = Person{Name: t.Owner(), Role: Role(t.Role), via: viaToken, source: t.Name}
	s.proof = t.Hash
	return nil
}

// byLink logs in with a link, only from this machine. It is there whatever other logins are configured, so that
// whoever operates the machine always gets in.
func (c *Console) byLink(q *request, s *session, secret string) error {
	s.via = viaLink
	if !q.fromThisMachine() {
		return faultBadCredentials
	}
	user, err := c.sessions.useLink(q.Context(), secret, c.now())
	s.Person = Person{Name: user, Role: Admin, via: viaLink}
	return err
}

// fromThisMachine reports whether the client's address is loopback or the one that the server was reached at.
func (q *request) fromThisMachine() bool {
	if address.IsLoopback(q.address) {
		return true
	}
	at, ok := q.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	host, _, err := net.SplitHostPort(at.String())
	return err == nil && host == q.address
}

// begin logs a person in and records it. The session is always new, so that nobody can know its secret.
func (c *Console) begin(w http.ResponseWriter, q *request, s *session) error {
	old := q.site.cookieValue(q.Request, sessionCookie)
	secret := ""
	q.session = nil
	err := c.audited(q.as(s), &audit.Operation{Action: "console.login",
		Detail: map[string]string{"via": s.via, "role": string(s.Role)}}, func() (err error) {
		secret, err = c.sessions.begin(q.Context(), s, old, c.now())
		return err
	})
	if err != nil {
		return err
	}
	q.session, q.secret = s, secret
	if old != "" {
		c.options.Traffic.hub.endSession(hashed(old))
	}
	q.site.setCookie(w, q.Request, sessionCookie, secret, int(c.sessions.Lifetime.Seconds()), http.SameSiteStrictMode)
	return nil
}

// as returns the request with a session that is not stored yet, for the audit log.
func (q *request) as(s *session) *request {
	other := *q
	other.session = s
	return &other
}

// logout ends the session, or all sessions of the person.
func (c *Console) logout(w http.ResponseWriter, q *request) error {
	var body struct{ Everywhere bool }
	if err := q.decode(&body); err != nil {
		return err
	}
	d := &audit.Operation{Action: "console.logout"}
	if body.Everywhere {
		d.Detail = map[string]string{"everywhere": "true"}
	}
	if err := c.sessions.end(q.Context(), q.session, body.Everywhere); err != nil {
		return err
	}
	c.note(q, d, "ok", nil)
	if body.Everywhere {
		c.options.Traffic.hub.endWhere(endLogout, func(s *stream) bool { return s.session.is(&q.session.Person) })
	} else {
		c.options.Traffic.hub.endSession(q.session.id)
	}
	q.site.setCookie(w, q.Request, sessionCookie, "", -1, http.SameSiteStrictMode)
	writeJSON(w, http.StatusOK, struct{}{})
	return nil
}

// sessionItem is a session in the list.
type sessionItem struct {
	User    string    `json:"user"`
	Role    Role      `json:"role"`
	Via     string    `json:"via"`
	Address string    `json:"address"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"`
	Self    bool      `json:"self"`
}

// listSessions lists the sessions.
func (c *Console) listSessions(q *request) (any, error) {
	list, err := c.sessions.list(q.Context(), c.now())
	if err != nil {
		return nil, err
	}
	items := []sessionItem{}
	for _, s := range list {
		if c.logins.Load().admit(&s.Person, s.proof, c.now()) == nil {
			items = append(items, sessionItem{s.Name, s.Role, s.via, s.address, s.created.UTC(), s.seen.UTC(),
				s.id == q.session.id})
		}
	}
	return listed(items), nil
}
