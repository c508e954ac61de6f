package freee

import (
	"crypto/rand"
	"fmt"
	"html"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

// Lifetimes of tokens, as at freee since 2023-12.
const (
	accessLifetime  = 6 * time.Hour
	refreshLifetime = 90 * 24 * time.Hour
	codeLifetime    = 10 * time.Minute
)

// outOfBand is the redirect URI of programs that cannot be redirected to: the code is shown instead.
const outOfBand = "urn:ietf:wg:oauth:2.0:oob"

// grant is the authorization behind an access token, a refresh token or a code.
type grant struct {
	company  *Company
	redirect string // of a code
	access   string // of a refresh token: the access token that it replaces
	expires  time.Time
}

// authorizations are all that is in force. Server.mu guards them.
type authorizations struct {
	codes, access, refresh map[string]grant
	old                    map[string]bool // access tokens that were replaced
}

func newAuthorizations() authorizations {
	return authorizations{map[string]grant{}, map[string]grant{}, map[string]grant{}, map[string]bool{}}
}

type validity int

const (
	invalid validity = iota
	valid
	expired
)

func (a *authorizations) check(s *Server, token string, now time.Time) validity {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, known := a.access[token]
	switch {
	case a.old[token] || known && !now.Before(g.expires):
		return expired
	case known:
		return valid
	}
	return invalid
}

// Tokens are a pair that the server has issued.
type Tokens struct{ Access, Refresh string }

// Issue returns a new pair for the company with this id, or for the first, as if a person had consented.
func (s *Server) Issue(companyID int) Tokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue(s.choose(strconv.Itoa(companyID)), "")
}

// ExpireAccess makes every access token expire now.
func (s *Server) ExpireAccess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.auth.access {
		s.auth.old[token] = true
	}
}

// Revoke makes every token worthless, as a person does in freee's settings.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = newAuthorizations()
}

// issue makes a pair; the access token that it replaces stops working. The caller holds mu.
func (s *Server) issue(company *Company, replaces string) Tokens {
	now := s.options.Now()
	pair := Tokens{"access-" + rand.Text(), "refresh-" + rand.Text()}
	if replaces != "" {
		s.auth.old[replaces] = true
	}
	s.auth.access[pair.Access] = grant{company: company, expires: now.Add(accessLifetime)}
	s.auth.refresh[pair.Refresh] = grant{company: company, access: pair.Access, expires: now.Add(refreshLifetime)}
	return pair
}

// choose returns the company with an id, else the first.
func (s *Server) choose(id string) *Company {
	for _, c := range s.options.Companies {
		if strconv.Itoa(c.ID) == id {
			return c
		}
	}
	if len(s.options.Companies) > 0 {
		return s.options.Companies[0]
	}
	return &Company{} // of a user who belongs to none
}

// authorize is the page on which a person consents. A browser chooses between several companies; anything else, and a
// browser where there is one company, consents at once. The parameter deny refuses.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != s.options.ClientID || q.Get("redirect_uri") == "" {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	browser := strings.Contains(r.Header.Get("Accept"), "text/html")
	if browser && q.Get("company_id") == "" && !q.Has("deny") && len(s.options.Companies) > 1 {
		s.selectCompany(w, r)
		return
	}
	result := url.Values{}
	if q.Has("deny") {
		result.Set("error", "access_denied")
	} else {
		result.Set("code", s.newCode(q))
	}
	if q.Has("state") {
		result.Set("state", q.Get("state"))
	}
	finish(w, r, q.Get("redirect_uri"), result)
}

func (s *Server) newCode(q url.Values) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := "code-" + rand.Text()
	s.auth.codes[code] = grant{company: s.choose(q.Get("company_id")), redirect: q.Get("redirect_uri"),
		expires: s.options.Now().Add(codeLifetime)}
	return code
}

// finish redirects to the app, or shows the code where there is nothing to redirect to.
func finish(w http.ResponseWriter, r *http.Request, redirect string, result url.Values) {
	if redirect == outOfBand {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<p>認可コード: <code>%s</code></p>", html.EscapeString(result.Get("code")))
		return
	}
	target, err := url.Parse(redirect)
	if err != nil {
		http.Error(w, "invalid redirect_uri", http.StatusBadRequest)
		return
	}
	q := target.Query()
	for name, values := range result {
		q[name] = values
	}
	target.RawQuery = q.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

// selectCompany shows the companies to choose from.
func (s *Server) selectCompany(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!doctype html><meta charset=utf-8><title>freee（フェイク）</title><p>連携する事業所を選択してください。<ul>")
	for _, c := range s.options.Companies {
		q := r.URL.Query()
		q.Set("company_id", strconv.Itoa(c.ID))
		fmt.Fprintf(w, `<li><a href="?%s">%s</a>`, html.EscapeString(q.Encode()), html.EscapeString(c.Name))
	}
	q := r.URL.Query()
	q.Set("deny", "1")
	fmt.Fprintf(w, `</ul><p><a href="?%s">許可しない</a>`, html.EscapeString(q.Encode()))
}

// token serves both grants. A code and a refresh token work once; the second time is invalid_grant for ever.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" || r.ParseForm() != nil {
		fakehttp.JSON(w, http.StatusBadRequest, oauthError("invalid_request"))
		return
	}
	form := r.PostForm
	if form.Get("client_id") != s.options.ClientID || form.Get("client_secret") != s.options.ClientSecret {
		fakehttp.JSON(w, http.StatusUnauthorized, oauthError("invalid_client"))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	var g grant
	var ok bool
	switch form.Get("grant_type") {
	case "authorization_code":
		g, ok = take(s.auth.codes, form.Get("code"))
		ok = ok && g.redirect == form.Get("redirect_uri")
	case "refresh_token":
		g, ok = take(s.auth.refresh, form.Get("refresh_token"))
	default:
		fakehttp.JSON(w, http.StatusBadRequest, oauthError("unsupported_grant_type"))
		return
	}
	if !ok || !now.Before(g.expires) {
		fakehttp.JSON(w, http.StatusUnauthorized, oauthError("invalid_grant"))
		return
	}
	pair := s.issue(g.company, g.access)
	fakehttp.JSON(w, http.StatusOK, map[string]any{
		"access_token": pair.Access, "token_type": "bearer", "expires_in": int(accessLifetime.Seconds()),
		"refresh_token": pair.Refresh,
		"scope":         "read write", "created_at": now.Unix(), "company_id": strconv.Itoa(g.company.ID),
		"external_cid": "0000000001",
	})
}

// take removes what works only once.
func take(grants map[string]grant, key string) (grant, bool) {
	g, ok := grants[key]
	delete(grants, key)
	return g, ok
}

func oauthError(code string) map[string]any {
	return map[string]any{"error": code, "error_description": "指定された認可グラントは不正か、有効期限切れか、無効か、別のクライアントに適用されています。"}
}
