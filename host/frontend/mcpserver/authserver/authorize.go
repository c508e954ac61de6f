package authserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/claim"
)

// authorization is a checked authorization request.
type authorization struct {
	Client   string `json:"client"`
	Name     string `json:"name"`
	Redirect string `json:"redirect"`
	State    string `json:"state,omitempty"`
	// Challenge is the S256 challenge of the client's verifier.
	Challenge string `json:"challenge"`
	// Scopes are the scopes of the tokens.
	Scopes []string `json:"scopes,omitempty"`
	// Begun is in seconds since 1970.
	Begun int64 `json:"begun"`
}

// Reasons why an authorization request is refused. The person reads them on a page: the Server redirects to a client
// only after the person has seen where to, so that nobody can use it to redirect people elsewhere.
var (
	errUnknownClient = errors.New("the client is not registered here (client_id)")
	errUnregistered  = errors.New("the client has not registered this redirect URI (redirect_uri)")
	errResponseType  = errors.New("the response type must be code (response_type)")
	errChallenge     = errors.New("the request needs a PKCE challenge with the method S256 (code_challenge)")
	errResource      = errors.New("the request is for another resource than hako (resource)")
	errParameter     = errors.New("the request has a repeated or oversized parameter")
	errExpired       = errors.New("the login did not begin in this browser, or took too long")
)

// maxState limits a client's state, in bytes.
const maxState = 4096

// parse checks an authorization request.
func (s *Server) parse(r *http.Request) (*authorization, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errParameter
	}
	for name, values := range query {
		if len(values) > 1 && name != "resource" || len(values[0]) > maxState {
			return nil, errParameter
		}
	}
	m, err := s.client(r, query.Get("client_id"))
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, errUnknownClient
	case !m.allows(query.Get("redirect_uri")):
		return nil, errUnregistered
	case query.Get("response_type") != "code":
		return nil, errResponseType
	case query.Get("code_challenge_method") != "S256" || !isChallenge(query.Get("code_challenge")):
		return nil, errChallenge
	case !s.isForResource(query["resource"]):
		return nil, errResource
	}
	return &authorization{Client: m.ID, Name: m.Name, Redirect: query.Get("redirect_uri"), State: query.Get("state"),
		Challenge: query.Get(
			"code_challenge"), Scopes: s.scopes(query.Get("scope")), Begun: s.options.Now().Unix()}, nil
}

// scopes returns the scopes of a grant: those of every token, and the optional ones that are asked for. Others are left
// out, and the response says so (RFC 6749, section 3.3).
func (s *Server) scopes(asked string) []string {
	granted := slices.Clone(s.options.Scopes)
	for _, scope := range s.options.OptionalScopes {
		if slices.Contains(strings.Fields(asked), scope) && !slices.Contains(granted, scope) {
			granted = append(granted, scope)
		}
	}
	return granted
}

// isChallenge reports whether text is the base64url form of a SHA-256 hash.
func isChallenge(text string) bool {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(data) == sha256.Size
}

// client returns the client with an ID, or nil.
func (s *Server) client(r *http.Request, id string) (*metadata, error) {
	is, valid := isDocument(id)
	switch {
	case is && !valid:
		return nil, nil
	case is:
		return s.documents.load(r.Context(), id, func() bool {
			_, wait := s.registrations.Begin(s.proxies.Address(r), s.options.Now())
			return wait == 0
		})
	}
	return s.clients.find(r.Context(), id)
}

// authorize asks the person whether the client may act for them. It asks every time, because the provider may remember
// a login: otherwise any client could have a code without the person's knowledge (confused deputy).
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if address.Hostname(r.Host) != address.Hostname(s.issuer.Host) {
		// The cookie must be for the name to which the provider redirects.
		http.Redirect(w, r, s.url(r.URL.RequestURI()), http.StatusFound)
		return
	}
	a, err := s.parse(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	browser := s.browser(r)
	if browser == "" {
		browser = rand.Text() + rand.Text()
	}
	name, path := s.cookie()
	// The provider redirects from another site, where a strict cookie is not sent.
	http.SetCookie(w, &http.Cookie{Name: name, Value: browser, Path: path, MaxAge: int(2 * loginLifetime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.issuer.Scheme == "https"})
	request, err := json.Marshal(a)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	encoded := base64.RawURLEncoding.EncodeToString(request)
	s.showConsent(w, r, a, encoded, derive(browser, "consent", encoded))
}

// browser returns the secret of the browser's cookie, or "".
func (s *Server) browser(r *http.Request) string {
	name, _ := s.cookie()
	cookies := r.CookiesNamed(name)
	if len(cookies) != 1 || len(cookies[0].Value) != 2*len(rand.Text()) {
		return ""
	}
	return cookies[0].Value
}

// derive returns a value that cannot be computed without the secret.
func derive(secret, purpose, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "hako oauth %s %s", purpose, text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// hashed returns the hash of a secret for the store.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// consent takes the person's answer. The proof shows that this browser was shown this request.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) {
	browser, encoded := s.browser(r), r.PostFormValue("request")
	a := new(authorization)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if s.origins.Check(r) != nil || browser == "" || err != nil || json.Unmarshal(data, a) != nil ||
		!hmac.Equal([]byte(r.PostFormValue("proof")), []byte(derive(browser, "consent", encoded))) ||
		s.options.Now().Sub(time.Unix(a.Begun, 0)) > loginLifetime {
		s.refuse(w, r, errExpired)
		return
	}
	if r.PostFormValue("answer") != "yes" {
		s.respond(w, r, a, url.Values{"error": {"access_denied"}, "error_description": {"The person refused."}})
		return
	}
	now := s.options.Now()
	if _, wait := s.consents.Begin(s.proxies.Address(r), now); wait > 0 {
		s.tooMany(w, r, wait)
		return
	}
	state := rand.Text()
	target, err := s.login.Begin(r.Context(), loginOf(browser, state))
	if err != nil {
		s.options.Logger.Error("the OpenID Connect provider for MCP clients cannot be used", "err", err)
		s.respond(w, r, a, unavailableResponse)
		return
	}
	if err := s.grants.begin(r.Context(), state, browser, data, now); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// loginOf returns the login at the provider with a state. Its other values are derived from the browser's secret, so
// that the store does not hold them.
func loginOf(browser, state string) issuer.Login {
	return issuer.Login{State: state, Nonce: derive(browser, "nonce", state),
		Verifier: derive(browser, "verifier", state)}
}

var unavailableResponse = url.Values{"error": {"temporarily_unavailable"},
	"error_description": {"The identity provider cannot be reached."}}

// begin stores a login at the provider.
func (g *grants) begin(ctx context.Context, state, browser string, request []byte, now time.Time) error {
	return g.store.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM oauth_login WHERE expires <= $1`, now.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO oauth_login (id, browser, request, expires) VALUES ($1, $2, $3, $4)`,
			hashed(state), hashed(browser), string(request), now.Add(loginLifetime).UnixMilli())
		return err
	})
}

// finish removes the login with a state that began in a browser and returns its request, or nil if there is none.
func (g *grants) finish(ctx context.Context, state, browser string, now time.Time) (*authorization, error) {
	var requests []string
	err := g.store.Update(ctx, func(tx *sql.Tx) (err error) {
		requests, err = store.Select(ctx, tx, store.Column[string],
			`DELETE FROM oauth_login WHERE id = $1 AND browser = $2 AND expires > $3 RETURNING request`,
			hashed(state), hashed(browser), now.UnixMilli())
		return err
	})
	if err != nil || len(requests) == 0 {
		return nil, err
	}
	a := new(authorization)
	if json.Unmarshal([]byte(requests[0]), a) != nil || checkRedirect(a.Redirect) != nil {
		return nil, nil // a damaged row is no login
	}
	return a, nil
}

// callback finishes a login after the provider's redirect and sends the person back to the client with a code.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	query, browser, now := r.URL.Query(), s.browser(r), s.options.Now()
	a, err := s.grants.finish(r.Context(), query.Get("state"), browser, now)
	switch {
	case err != nil:
		s.fail(w, r, err)
		return
	case a == nil, browser == "", query.Has("iss") && query.Get("iss") != s.options.Provider.Issuer:
		s.failed(r, &Event{}, errExpired)
		s.refuse(w, r, errExpired)
		return
	case query.Get("code") == "":
		s.failed(r, &Event{Client: a.Name}, errProviderRefused)
		s.respond(w, r, a, url.Values{"error": {"access_denied"},
			"error_description": {"The identity provider refused the login."}})
		return
	}
	claims, err := s.login.Finish(r.Context(), query.Get("code"), loginOf(browser, query.Get("state")))
	if err != nil {
		s.options.Logger.Warn("a login of an MCP client at the OpenID Connect provider failed", "err", err)
		s.failed(r, &Event{Client: a.Name}, known(err))
		if errors.Is(err, issuer.ErrProvider) {
			s.respond(w, r, a, unavailableResponse)
			return
		}
		s.respond(w, r, a, url.Values{"error": {"server_error"}, "error_description": {"The login failed."}})
		return
	}
	p, err := s.options.Provider.person(claims)
	if err != nil {
		s.options.Logger.Warn("an account may not log in for an MCP client", "err", err)
		s.failed(r, &Event{Client: a.Name, User: p.User, Tenant: p.Tenant}, known(err))
		s.respond(w, r, a, url.Values{"error": {"access_denied"},
			"error_description": {"This account may not log in here."}})
		return
	}
	code, err := s.grants.issue(r.Context(), a, p, s.options.Resource, s.options.Provider.Issuer, now)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.options.Record(Event{Action: Login, Address: s.proxies.Address(r), User: p.User, Tenant: p.Tenant,
		Client: a.Name})
	s.respond(w, r, a, url.Values{"code": {code}})
}

var (
	errProviderRefused = errors.New("the identity provider refused the login")
	errAccount         = errors.New("the account lacks a required claim (http.auth.proxy.require)")
)

// known returns the error in fixed words, without texts of the provider.
func known(err error) error {
	for _, fixed := range []error{issuer.ErrProvider, issuer.ErrIdentity, errAccount} {
		if errors.Is(err, fixed) {
			return fixed
		}
	}
	return errors.New("the login failed")
}

// person is the user that has logged in.
type person struct {
	User   string   `json:"-"`
	Tenant string   `json:"-"`
	Groups []string `json:"groups,omitempty"`
}

// person reads verified claims. With an error it returns the names as far as they are proven.
func (p *Provider) person(claims map[string]any) (*person, error) {
	found := new(person)
	name, err := issuer.User(claims, p.UserClaim)
	if err != nil {
		return found, err
	}
	found.User = name
	if p.TenantClaim != "" {
		tenant, _ := claims[p.TenantClaim].(string)
		if err := identity.Check(tenant); err != nil {
			return found, fmt.Errorf("%w: the claim %s: %w", issuer.ErrIdentity, p.TenantClaim, err)
		}
		found.Tenant = tenant
	}
	for name, values := range p.Require {
		if !claim.Has(claims[name], values...) {
			return found, fmt.Errorf("%w: %s", errAccount, name)
		}
	}
	found.Groups = identity.Groups(claims[p.GroupsClaim])
	return found, nil
}

// respond redirects to the client with the parameters of a response, its state and the issuer (RFC 9207).
func (s *Server) respond(w http.ResponseWriter, r *http.Request, a *authorization, parameters url.Values) {
	parameters = url.Values(http.Header(parameters).Clone())
	parameters.Set("iss", s.Issuer())
	if a.State != "" {
		parameters.Set("state", a.State)
	}
	separator := "?"
	if strings.Contains(a.Redirect, "?") {
		separator = "&"
	}
	http.Redirect(w, r, a.Redirect+separator+parameters.Encode(), http.StatusSeeOther)
}

// failed records a refused login, unless the address has had many.
func (s *Server) failed(r *http.Request, e *Event, err error) {
	e.Action, e.Address, e.Err = Refused, s.proxies.Address(r), err
	if _, wait := s.failures.Begin(e.Address, s.options.Now()); wait == 0 {
		s.options.Record(*e)
	}
}

// retryAfter sets the header Retry-After.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
}
