package authserver

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/visible"
)

// Limits of a client's metadata.
const (
	maxRedirects = 20
	maxURI       = 1024
	maxName      = 80
	maxMetadata  = 16 << 10
)

// metadata is a client's description of itself, in a registration (RFC 7591, section 2) or in a document. Unknown
// members are ignored.
type metadata struct {
	ID           string   `json:"client_id,omitempty"`
	Name         string   `json:"client_name,omitempty"`
	RedirectURIs []string `json:"redirect_uris"`
	AuthMethod   string   `json:"token_endpoint_auth_method,omitempty"`
	Grants       []string `json:"grant_types,omitempty"`
	Responses    []string `json:"response_types,omitempty"`
}

// Errors of RFC 7591, section 3.2.2.
var (
	errMetadata = errors.New("invalid_client_metadata")
	errRedirect = errors.New("invalid_redirect_uri")
)

// parseMetadata reads untrusted metadata. The error matches errMetadata or errRedirect.
func parseMetadata(data []byte) (*metadata, error) {
	m := new(metadata)
	if len(data) > maxMetadata {
		return nil, fmt.Errorf("%w: the metadata has more than %d bytes", errMetadata, maxMetadata)
	}
	if err := strictjson.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errMetadata, err)
	}
	switch {
	case len(m.RedirectURIs) == 0:
		return nil, fmt.Errorf("%w: redirect_uris is missing", errRedirect)
	case len(m.RedirectURIs) > maxRedirects:
		return nil, fmt.Errorf("%w: there are more than %d redirect_uris", errRedirect, maxRedirects)
	case len(m.Grants) > 0 && !slices.Contains(m.Grants, grantCode):
		return nil, fmt.Errorf("%w: grant_types lacks %s", errMetadata, grantCode)
	case len(m.Responses) > 0 && !slices.Contains(m.Responses, "code"):
		return nil, fmt.Errorf("%w: response_types lacks code", errMetadata)
	}
	for _, uri := range m.RedirectURIs {
		if err := checkRedirect(uri); err != nil {
			return nil, fmt.Errorf("%w: %w", errRedirect, err)
		}
	}
	m.Name = displayName(m.Name)
	return m, nil
}

// displayName returns a name that cannot show something else than it contains, at most maxName characters of it.
func displayName(name string) string {
	name = strings.Join(strings.Fields(visible.Clean(strings.ToValidUTF8(name, ""))), " ")
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName]) + "…"
	}
	return name
}

// appSchemes are schemes of well-known MCP clients without the period that RFC 8252, section 7.1, demands.
var appSchemes = []string{"cursor", "vscode", "vscode-insiders"}

// checkRedirect returns an error unless the URI is one with https, with http on this machine, or of a native program.
func checkRedirect(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURI || strings.ContainsFunc(text,
		func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("a redirect URI is not a URI of at most 1,024 ASCII characters")
	case strings.Contains(text, "#"), u.User != nil, strings.Contains(text, `\`):
		return fmt.Errorf("the redirect URI %q has a fragment, a user name or a backslash", text)
	case u.Hostname() != "" && address.IsConfidential(u) && strings.HasPrefix(text[len(u.Scheme):], "://"+u.Host):
		return nil
	case u.Scheme != "http" && u.Scheme != "https" && (strings.Contains(u.Scheme, ".") ||
		slices.Contains(appSchemes, u.Scheme)):
		return nil
	}
	return fmt.Errorf("the redirect URI %q needs https, http with a loopback address, or the scheme of a native "+
		"program, such as com.example.app", text)
}

// allows reports whether a client has registered a redirect URI: exactly that, or for http on this machine the same
// with another port (RFC 8252, section 7.3).
func (m *metadata) allows(redirect string) bool {
	return checkRedirect(redirect) == nil && slices.ContainsFunc(m.RedirectURIs, func(registered string) bool {
		return registered == redirect || isLoopback(registered) && isLoopback(redirect) &&
			withoutPort(registered) == withoutPort(redirect)
	})
}

func isLoopback(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Scheme == "http" && address.IsLoopback(u.Hostname())
}

// withoutPort removes scheme and port of a URI that checkRedirect accepts, and leaves every other byte as it is.
func withoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Hostname() + uri[len(u.Scheme+"://"+u.Host):]
}

// isDocument reports whether a client ID names a metadata document, and whether it may: an https URL with a path and
// without fragment, user name and dot segments, in its canonical form.
func isDocument(id string) (is, valid bool) {
	if !strings.HasPrefix(id, "https://") {
		return false, false
	}
	u, err := url.Parse(id)
	if err != nil || len(id) > maxURI || u.User != nil || strings.ContainsAny(id, "#\\ ") || len(u.Path) < 2 ||
		u.Hostname() == "" || u.String() != id {
		return true, false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return true, false
		}
	}
	return true, true
}
