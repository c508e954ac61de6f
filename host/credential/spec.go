package credential

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Providers of credentials. Empty means a static token.
const (
	// OAuth2 is an authorization server with authorization codes, device codes, or both (RFC 6749, RFC 7636, RFC 8628).
	OAuth2 = "oauth2"
	// Freee is OAuth2 with what freee's needs (developer.freee.co.jp).
	Freee = "freee"
	// MCP is an MCP server that says itself where its authorization server is, as MCP's authorization has it (2025-11-25): found by RFC 9728
	// and RFC 8414, with a registration of its own (RFC 7591) where no ClientID is set.
	MCP = "mcp"
	// GoogleServiceAccount signs its own requests for tokens (RFC 7523, developers.google.com/identity/protocols/oauth2/service-account).
	GoogleServiceAccount = "google-service-account"
)

// Spec is what an operator says of one credential.
type Spec struct {
	// Provider is one of the constants above, or empty.
	Provider string

	// Token is a static token. Header is the request header that carries it; empty means Authorization. Scheme is put in front of
	// it; empty means Bearer in Authorization and nothing elsewhere. With Basic the token is "user:password".
	Token          Source
	Header, Scheme string

	// ClientID and ClientSecret are the application's at an authorization server. A public client has no secret.
	ClientID     string
	ClientSecret Source
	// Scopes are asked for at consent, or for a service account with every token; that defaults to spreadsheets.
	Scopes []string
	// AuthorizeURL, TokenURL and DeviceURL are the endpoints. Freee and GoogleServiceAccount have defaults.
	AuthorizeURL, TokenURL, DeviceURL string
	// RedirectURL is where the authorization server sends the operator back to: http on a loopback address. Empty means any free
	// port of 127.0.0.1.
	RedirectURL string

	// Resource is the URL of an MCP server, which its tokens are for.
	Resource string

	// Key is a service account's key, the JSON that Google hands out. Subject is the user to act for, if any.
	Key     Source
	Subject string
}

// preset is what is known of a provider.
type preset struct {
	authorizeURL, tokenURL string
	scopes                 []string
	// parameters go into the authorization URL.
	parameters map[string]string
	// public are the members of the token reply that guests may know.
	public []string
	// pkce says that the provider knows RFC 7636. Unknown parameters are ignored by most, but not by all.
	pkce bool
	// codeRedirect is the redirect URI that shows the code to the operator instead.
	codeRedirect string
	// expiredCode is the member "code" of an error that means an old token, whatever the status.
	expiredCode string
}

// presets has every provider that is connected or signs; the static token has none.
var presets = map[string]preset{
	OAuth2: {pkce: true},
	MCP:    {pkce: true},
	Freee: {
		authorizeURL: "https://accounts.secure.freee.co.jp/public_api/authorize",
		tokenURL:     "https://accounts.secure.freee.co.jp/public_api/token",
		parameters:   map[string]string{"prompt": "select_company"},
		public:       []string{"company_id"},
		codeRedirect: "urn:ietf:wg:oauth:2.0:oob",
		expiredCode:  "expired_access_token",
	},
	GoogleServiceAccount: {scopes: []string{"https://www.googleapis.com/auth/spreadsheets"}},
}

// connects reports a provider that the operator gives consent to.
func (s *Spec) connects() bool {
	return s.Provider == OAuth2 || s.Provider == Freee || s.Provider == MCP
}

// withDefaults returns s with what its provider implies.
func (s Spec) withDefaults() Spec {
	p := presets[s.Provider]
	s.AuthorizeURL = cmp.Or(s.AuthorizeURL, p.authorizeURL)
	s.TokenURL = cmp.Or(s.TokenURL, p.tokenURL)
	if len(s.Scopes) == 0 {
		s.Scopes = p.scopes
	}
	s.Header = http.CanonicalHeaderKey(cmp.Or(s.Header, "Authorization"))
	if s.Header == "Authorization" {
		s.Scheme = cmp.Or(s.Scheme, "Bearer")
	}
	return s
}

// Check returns what is wrong with s: a provider that does not exist, something missing, something that its provider has no use
// for, or an address that secrets must not be sent to.
func (s Spec) Check() error {
	if _, ok := presets[s.Provider]; !ok && s.Provider != "" {
		known := slices.Sorted(maps.Keys(presets))
		return fmt.Errorf("provider %q does not exist: there are %s, and static tokens without a provider", s.Provider, strings.Join(known, ", "))
	}
	if err := s.checkUse(); err != nil {
		return err
	}
	if err := s.checkSources(); err != nil {
		return err
	}
	if s.connects() {
		if err := s.withDefaults().checkOAuth(); err != nil {
			return err
		}
	}
	return s.checkAddresses()
}

// checkUse holds that nothing is set that the provider has no use for: it would seem to do something.
func (s Spec) checkUse() error {
	static, signs, finds := s.Provider == "", s.Provider == GoogleServiceAccount, s.Provider == MCP
	for _, field := range []struct {
		key      string
		set, use bool
	}{
		{"token", !s.Token.IsZero(), static},
		{"header", s.Header != "", static},
		{"scheme", s.Scheme != "", static},
		{"clientId", s.ClientID != "", s.connects()},
		{"clientSecret", !s.ClientSecret.IsZero(), s.connects()},
		{"authorizeUrl", s.AuthorizeURL != "", s.connects() && !finds},
		{"deviceUrl", s.DeviceURL != "", s.connects() && !finds},
		{"resource", s.Resource != "", finds},
		{"redirectUrl", s.RedirectURL != "", s.connects()},
		{"tokenUrl", s.TokenURL != "", !static && !finds},
		{"scopes", len(s.Scopes) > 0, !static},
		{"key", !s.Key.IsZero(), signs},
		{"subject", s.Subject != "", signs},
	} {
		if field.set && !field.use {
			return fmt.Errorf("%s has no meaning for %s: remove it", field.key, cmp.Or(s.Provider, "a static token"))
		}
	}
	return nil
}

func (s Spec) checkSources() error {
	for _, source := range []struct {
		key      string
		value    Source
		required bool
	}{
		{"token", s.Token, s.Provider == ""},
		{"clientSecret", s.ClientSecret, s.Provider == Freee},
		{"key", s.Key, s.Provider == GoogleServiceAccount},
	} {
		if source.value.IsZero() && !source.required {
			continue
		}
		if err := source.value.Check(); err != nil {
			return fmt.Errorf("%s %w", source.key, err)
		}
	}
	if s.Header != "" && (!httpguts.ValidHeaderFieldName(s.Header) || slices.Contains(framing, http.CanonicalHeaderKey(s.Header))) {
		return fmt.Errorf("header %q cannot carry a credential", s.Header)
	}
	if !httpguts.ValidHeaderFieldValue(s.Scheme) {
		return errors.New("scheme has control characters")
	}
	return nil
}

// framing are headers that say how a request is sent, or to whom.
var framing = []string{"Accept-Encoding", "Connection", "Content-Length", "Host", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (s Spec) checkOAuth() error {
	switch {
	case s.Provider == MCP && s.Resource == "":
		return errors.New("resource is missing: it is the URL of the MCP server")
	case s.Provider == MCP && s.ClientID == "" && !s.ClientSecret.IsZero():
		return errors.New("clientSecret has no meaning without clientId")
	case s.Provider == MCP:
	case s.ClientID == "":
		return errors.New("clientId is missing: it is the application's identifier at " + s.Provider)
	case s.TokenURL == "":
		return errors.New("tokenUrl is missing")
	case s.AuthorizeURL == "" && s.DeviceURL == "":
		return errors.New("authorizeUrl or deviceUrl is missing: one of them starts the consent")
	}
	if s.RedirectURL == "" {
		return nil
	}
	if u, err := url.Parse(s.RedirectURL); err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) {
		return fmt.Errorf("redirectUrl %q is not http on a loopback address, such as http://127.0.0.1:8421/callback", s.RedirectURL)
	}
	return nil
}

// checkAddresses holds that secrets are sent to https, or to this machine.
func (s Spec) checkAddresses() error {
	for key, raw := range map[string]string{"authorizeUrl": s.AuthorizeURL, "tokenUrl": s.TokenURL, "deviceUrl": s.DeviceURL, "resource": s.Resource} {
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
			return fmt.Errorf("%s %q is not an https URL (http only on a loopback address)", key, raw)
		}
	}
	return nil
}

// isLoopback reports a host that is this machine by its literal form.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
