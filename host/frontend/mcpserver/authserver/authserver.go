// Package authserver is the OAuth 2.1 authorization server of hako's MCP endpoint, for companies whose identity
// provider has no dynamic client registration (MCP, authorization).
//
// MCP clients register with a Server, or name a client ID metadata document. The Server asks the person whether the
// client may act for them, has them log in at the configured OpenID Connect provider with one client of its own, and
// issues its own tokens for hako's resource. The provider's tokens never leave it. All state is in the store, so any
// replica can answer any request; secrets are stored as hashes.
//
// The Server implements RFC 6749 as OAuth 2.1 restricts it: public clients, the authorization code flow with PKCE
// (S256) and rotated refresh tokens. It also implements RFC 7009, RFC 7591, RFC 8414, RFC 8707 and RFC 9207.
package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/attempts"
	"github.com/hako-run/hako/internal/peer"
)

// Provider is the OpenID Connect provider at which people log in.
type Provider struct {
	// Issuer is the provider's identifier, an https URL (http on this machine).
	Issuer string
	// ClientID and ClientSecret identify hako at the provider. A public client has no secret.
	ClientID     string
	ClientSecret secret.Source
	// Scopes are requested besides "openid". Empty means "profile" and "email".
	Scopes []string
	// UserClaim has the user's name for policies. Empty means "email", which must be verified (email_verified).
	UserClaim string
	// GroupsClaim has the groups, a list of strings. Empty means "groups". TenantClaim has hako's tenant; empty means
	// no tenant.
	GroupsClaim, TenantClaim string
	// Require has claims that an account must have, each with one of the values: the domain of a Google Workspace (hd),
	// the tenant of Entra ID (tid), a group.
	Require map[string][]string
}

// google is the issuer at which everybody can have an account.
const google = "https://accounts.google.com"

// Check returns an error for an issuer that secrets must not be sent to, a missing client, or a provider at which
// everybody could log in.
func (p *Provider) Check() error {
	at, err := url.Parse(p.Issuer)
	switch {
	case err != nil || !address.IsConfidential(at):
		return fmt.Errorf("the issuer %q must be an https URL", p.Issuer)
	case p.ClientID == "":
		return errors.New("the client ID is missing")
	case strings.TrimSuffix(p.Issuer, "/") == google && len(p.Require) == 0:
		return errors.New("everybody with a Google account could log in: require the domain of your Workspace, " +
			"such as require: {hd: [example.com]}")
	}
	for claim, values := range p.Require {
		if len(values) == 0 || slices.Contains(values, "") {
			return fmt.Errorf("require: the claim %q needs a value", claim)
		}
	}
	return nil
}

// Options configures a Server. Resource, Provider and Store are needed.
type Options struct {
	// Resource is the public URL of the MCP endpoint, such as "https://hako.example.com/mcp". Its origin is the issuer
	// of the tokens.
	Resource string
	Provider Provider
	// Every token has Scopes; a client gets OptionalScopes if it requests them.
	Scopes, OptionalScopes []string
	// Lifetime is the time after which people log in again. Zero means 7 days.
	Lifetime time.Duration
	// TrustedProxies are proxies whose X-Forwarded-For is trusted, as addresses or in CIDR notation.
	TrustedProxies []string
	Store          *store.Store
	// Proxy is an upstream proxy for outgoing requests. Nil means none; the environment plays no part.
	Proxy *url.URL
	// Client sends requests to the provider, and Documents those for client ID metadata documents. Nil means clients
	// with a timeout; that for documents connects to public addresses only.
	Client, Documents *http.Client
	// Now is the clock. Nil means the clock of the store.
	Now func() time.Time
	// Record receives every login and every refused or revoked one. Failures of one address are recorded at a limited
	// rate. Nil records nothing.
	Record func(Event)
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
}

// Event is a login, or its end.
type Event struct {
	// Action is "login", "refused" or "revoked".
	Action string
	// Address is the client's IP address. User and Tenant are empty unless they are proven. Client is the client's
	// own name.
	Address, User, Tenant, Client string
	// Err is why a login was refused or revoked, in fixed words.
	Err error
}

// Actions of events.
const (
	Login   = "login"
	Refused = "refused"
	Revoked = "revoked"
)

const (
	defaultLifetime = 7 * 24 * time.Hour
	// accessLifetime is the lifetime of access tokens.
	accessLifetime = time.Hour
	// codeLifetime is the time for the exchange of a code, loginLifetime the one for a login at the provider.
	codeLifetime  = time.Minute
	loginLifetime = 10 * time.Minute
	// maxForm limits the body of a request, in bytes.
	maxForm = 64 << 10
)

// Server is an authorization server. It is safe for concurrent use.
type Server struct {
	options   Options
	issuer    *url.URL
	login     *issuer.LoginClient
	documents *documents
	grants    *grants
	clients   *clients
	proxies   peer.Proxies
	origins   *http.CrossOriginProtection
	handler   http.Handler
	// registrations, consents and failures limit the requests of an address.
	registrations, consents, failures *attempts.Limiter
	// end ends streams, which Close waits for.
	end     context.CancelFunc
	streams sync.WaitGroup
}

// Check returns an error for options that New would refuse.
func (o *Options) Check() error {
	resource, err := url.Parse(o.Resource)
	if err != nil || !address.IsConfidential(resource) || resource.RawQuery != "" || resource.Fragment != "" ||
		resource.User != nil {
		return fmt.Errorf("the resource %q is not an https URL without query: give the endpoint's public one",
			o.Resource)
	}
	if o.Lifetime < 0 {
		return errors.New("the lifetime of logins must not be negative")
	}
	if _, err := peer.NewProxies(o.TrustedProxies); err != nil {
		return err
	}
	return o.Provider.Check()
}

// New returns a Server, without contacting the provider. The caller closes it.
func New(ctx context.Context, options Options) (*Server, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	options.setDefaults()
	resource, err := url.Parse(options.Resource)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, issuer: &url.URL{Scheme: resource.Scheme, Host: resource.Host},
		registrations: attempts.New(), consents: attempts.New(), failures: attempts.New(),
		origins: http.NewCrossOriginProtection()}
	if err := s.origins.AddTrustedOrigin(s.issuer.String()); err != nil {
		return nil, err
	}
	if s.proxies, err = peer.NewProxies(options.TrustedProxies); err != nil {
		return nil, err
	}
	if err := migrate(ctx, options.Store); err != nil {
		return nil, err
	}
	login := issuer.LoginOptions{Issuer: options.Provider.Issuer, ID: options.Provider.ClientID,
		Scopes: options.Provider.Scopes, Redirect: s.url(callbackPath), HTTP: options.Client, Now: options.Now,
		Logger: options.Logger}
	if !options.Provider.ClientSecret.IsZero() {
		login.Secret = options.Provider.ClientSecret.Read
	}
	s.login = issuer.NewLoginClient(login)
	s.documents = newDocuments(options.Documents, options.Now)
	s.clients = &clients{options.Store}
	watch, end := context.WithCancel(context.Background())
	s.end = end
	s.grants = newGrants(options.Store, options.Lifetime, options.Store.Changes(watch, endedTopic))
	s.streams.Go(func() {
		s.grants.revocations.run(watch, options.Store.Changes(watch, endedTopic), options.Now, options.Logger)
	})
	s.handler = s.routes()
	return s, nil
}

func (o *Options) setDefaults() {
	p := &o.Provider
	if len(p.Scopes) == 0 {
		p.Scopes = []string{"profile", "email"}
	}
	if p.UserClaim == "" {
		p.UserClaim = issuer.EmailClaim
	}
	if p.GroupsClaim == "" {
		p.GroupsClaim = "groups"
	}
	if o.Lifetime == 0 {
		o.Lifetime = defaultLifetime
	}
	if o.Client == nil {
		o.Client = issuer.NewClient(o.Proxy)
	}
	if o.Documents == nil {
		o.Documents = &http.Client{Transport: outbound.NewPublicTransport(o.Proxy)}
	}
	if o.Now == nil {
		o.Now = o.Store.Time
	}
	if o.Record == nil {
		o.Record = func(Event) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Close releases what the Server holds. It may be called twice, and on nil.
func (s *Server) Close() {
	if s != nil {
		s.end()
		s.streams.Wait()
	}
}

// Handler returns the handler of the paths that Handles names, or nil if s is nil. The caller checks the Host header.
func (s *Server) Handler() http.Handler {
	if s == nil {
		return nil
	}
	return http.HandlerFunc(s.serve)
}

// Issuer is the issuer identifier, the origin of the resource.
func (s *Server) Issuer() string { return s.issuer.String() }

func (s *Server) url(path string) string { return s.issuer.String() + path }

// Paths of the endpoints. Path is above all of them but the metadata.
const (
	MetadataPath  = "/.well-known/oauth-authorization-server"
	Path          = "/oauth/"
	authorizePath = Path + "authorize"
	consentPath   = Path + "consent"
	callbackPath  = Path + "callback"
	tokenPath     = Path + "token"
	registerPath  = Path + "register"
	revokePath    = Path + "revoke"
)

// Handles reports whether a path is one of a Server's endpoints.
func Handles(path string) bool { return path == MetadataPath || strings.HasPrefix(path, Path) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "same-origin")
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	s.handler.ServeHTTP(w, r)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+authorizePath, s.authorize)
	mux.HandleFunc("POST "+consentPath, s.consent)
	mux.HandleFunc("GET "+callbackPath, s.callback)
	for path, endpoint := range map[string]struct {
		method string
		serve  http.HandlerFunc
	}{
		MetadataPath: {http.MethodGet, s.metadata},
		tokenPath:    {http.MethodPost, s.token},
		registerPath: {http.MethodPost, s.register},
		revokePath:   {http.MethodPost, s.revoke},
	} {
		mux.HandleFunc(endpoint.method+" "+path, allowAnyOrigin(endpoint.serve))
		mux.HandleFunc("OPTIONS "+path, allowAnyOrigin(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Access-Control-Allow-Methods", endpoint.method)
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type, MCP-Protocol-Version")
			w.Header().Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
		}))
	}
	return mux
}

// allowAnyOrigin lets pages of any site use an endpoint, for clients in browsers. Such an endpoint looks at no cookie.
func allowAnyOrigin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		next(w, r)
	}
}

// metadata serves the document of RFC 8414.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=3600")
	writeJSON(w, http.StatusOK, struct {
		Issuer        string   `json:"issuer"`
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Registration  string   `json:"registration_endpoint"`
		Revocation    string   `json:"revocation_endpoint"`
		Scopes        []string `json:"scopes_supported,omitempty"`
		Responses     []string `json:"response_types_supported"`
		Modes         []string `json:"response_modes_supported"`
		Grants        []string `json:"grant_types_supported"`
		Methods       []string `json:"token_endpoint_auth_methods_supported"`
		RevokeMethods []string `json:"revocation_endpoint_auth_methods_supported"`
		Challenges    []string `json:"code_challenge_methods_supported"`
		Iss           bool     `json:"authorization_response_iss_parameter_supported"`
		Documents     bool     `json:"client_id_metadata_document_supported"`
	}{
		s.Issuer(), s.url(authorizePath), s.url(tokenPath), s.url(registerPath), s.url(revokePath),
		slices.Concat(s.options.Scopes, s.options.OptionalScopes),
		[]string{"code"}, []string{"query"}, []string{grantCode, grantRefresh}, []string{"none"}, []string{"none"},
		[]string{"S256"}, true, true,
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "The answer cannot be encoded.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has gone misses nothing
}

// isForResource reports whether all resources of a request (RFC 8707) are hako's. Without one the token is for hako
// too. Scheme and host are compared without regard to case, and a final slash does not count, as MCP recommends.
func (s *Server) isForResource(resources []string) bool {
	return !slices.ContainsFunc(resources, func(text string) bool {
		return canonical(text) != canonical(s.options.Resource)
	})
}

func canonical(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return resource
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// cookie returns the name and the path of the cookie that binds a login to a browser. With https the prefix prevents
// other hosts of the domain from setting it. Without https the port separates the servers of one machine.
func (s *Server) cookie() (name, path string) {
	if s.issuer.Scheme == "https" {
		return "__Host-hako-oauth", "/"
	}
	_, port, _ := net.SplitHostPort(s.issuer.Host)
	return "hako-oauth-" + port, Path
}
