package credential

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/address"
)

// Providers. Empty means a static token.
const (
	// OAuth2 is an authorization server with authorization codes, device codes, or both (RFC 6749, RFC 7636, RFC 8628).
	OAuth2 = "oauth2"
	// Freee is OAuth2 with the peculiarities of freee (developer.freee.co.jp).
	Freee = "freee"
	// MCP is the authorization of an MCP server (MCP 2025-11-25). The authorization server is discovered (RFC 9728, RFC
	// 8414), and hako registers there (RFC 7591) unless ClientID is set.
	MCP = "mcp"
	// GoogleServiceAccount gets tokens with signed assertions (RFC 7523,
	// developers.google.com/identity/protocols/oauth2/service-account).
	GoogleServiceAccount = "google-service-account"
)

// Spec is the configuration of one credential.
type Spec struct {
	// Provider is one of the constants above, or empty.
	Provider string

	// Token is a static token. Header is the request header that carries it; empty means Authorization. Scheme precedes
	// it; empty means Bearer in Authorization and nothing in other headers. With the scheme Basic the token is
	// "user:password".
	Token          secret.Source
	Header, Scheme string

	// ClientID and ClientSecret identify the client at the authorization server. A public client has no secret.
	ClientID     string
	ClientSecret secret.Source
	// Scopes are requested at consent, or for a service account with every token. The default for service accounts is
	// the scope of spreadsheets.
	Scopes []string
	// AuthorizeURL, TokenURL and DeviceURL are the endpoints. Freee and GoogleServiceAccount have defaults.
	AuthorizeURL, TokenURL, DeviceURL string
	// RedirectURL is the redirect URI: http on a loopback address. Empty means any free port of 127.0.0.1.
	RedirectURL string

	// Resource is the URL of the MCP server.
	Resource string

	// Key is the JSON key file of a service account. Subject is the user to impersonate, if any.
	Key     secret.Source
	Subject string
}

// preset contains the properties of a provider.
type preset struct {
	authorizeURL, tokenURL string
	scopes                 []string
	// parameters are added to the authorization URL.
	parameters map[string]string
	// public are the members of the token response that guests may know.
	public []string
	// pkce reports whether the provider supports RFC 7636. Not all servers ignore unknown parameters.
	pkce bool
	// codeRedirect is a redirect URI of the provider that shows the code to the operator.
	codeRedirect string
	// expiredCode is the member "code" of errors that mean an expired token, whatever their status.
	expiredCode string
}

// presets has an entry for every provider.
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

// connects reports whether the provider needs the operator's consent.
func (s *Spec) connects() bool {
	return s.Provider == OAuth2 || s.Provider == Freee || s.Provider == MCP
}

// withDefaults returns s with the defaults of its provider.
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

// Check returns an error for an unknown provider, a missing field, a field that the provider does not use, or an
// address to which secrets must not be sent.
func (s Spec) Check() error {
	if _, ok := presets[s.Provider]; !ok && s.Provider != "" {
		known := slices.Sorted(maps.Keys(presets))
		return fmt.Errorf("provider %q does not exist: use one of %s, or no provider for a static token", s.Provider,
			strings.Join(known, ", "))
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

// checkUse returns an error if a field is set that the provider does not use.
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
			return fmt.Errorf("%s is not used by %s: remove it", field.key, cmp.Or(s.Provider, "a static token"))
		}
	}
	return nil
}

func (s Spec) checkSources() error {
	for _, source := range []struct {
		key      string
		value    secret.Source
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
	if s.Header != "" && (!httpguts.ValidHeaderFieldName(s.Header) || slices.Contains(messageHeaders,
		http.CanonicalHeaderKey(s.Header))) {
		return fmt.Errorf("header %q cannot carry a credential", s.Header)
	}
	if !httpguts.ValidHeaderFieldValue(s.Scheme) {
		return errors.New("scheme has control characters")
	}
	return nil
}

// messageHeaders are headers that control the framing or the routing of a request.
var messageHeaders = []string{"Accept-Encoding", "Connection", "Content-Length", "Host", "Range", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

func (s Spec) checkOAuth() error {
	switch {
	case s.Provider == MCP && s.Resource == "":
		return errors.New("resource is missing: it is the URL of the MCP server")
	case s.Provider == MCP && s.ClientID == "" && !s.ClientSecret.IsZero():
		return errors.New("clientSecret is not used without clientId")
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
	if u, err := url.Parse(s.RedirectURL); err != nil || u.Scheme != "http" || !address.IsLoopback(u.Hostname()) {
		return fmt.Errorf("redirectUrl %q is not http on a loopback address, such as http://127.0.0.1:8421/callback",
			s.RedirectURL)
	}
	return nil
}

// checkAddresses checks that secrets are sent over https or to this machine.
func (s Spec) checkAddresses() error {
	for key, raw := range map[string]string{"authorizeUrl": s.AuthorizeURL, "tokenUrl": s.TokenURL,
		"deviceUrl": s.DeviceURL, "resource": s.Resource} {
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || u.User != nil || !address.IsConfidential(u) {
			return fmt.Errorf("%s %q is not an https URL (http only on a loopback address)", key, raw)
		}
	}
	return nil
}
