package manifest

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// hostname is a DNS name, the letters lower case; a wildcard for its subdomains is taken off before.
var hostname = lazyregexp.New(`^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$`)

var defaultPort = map[string]string{"http": "80", "https": "443"}

// ParseBaseURL parses a base URL of an HTTP permission: http or https, a host that may start with "*." or be "*",
// optionally a port, and a plain path. In the result the host is in lower case, a default port is left out and an empty
// path is "/".
//
// It is an error if the URL has a user, a query or a fragment, if its host is neither a DNS name in ASCII nor an
// address, or if its path is not clean or holds escapes of "/", "\" or ".".
func ParseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, errors.New(`is missing: it must be a URL such as "https://api.example.com/v1/"`)
	case err != nil || !isASCII(s) || len(s) > 1000:
		return nil, errors.New(
			`must be a URL in ASCII such as "https://api.example.com/v1/", international host names in their xn-- form`)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New(`must start with "https://" or "http://"`)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return nil, errors.New("must not have a user, a query or a fragment")
	}
	if u.Host, err = canonicalHost(u); err != nil {
		return nil, err
	}
	if err := checkPath(u); err != nil {
		return nil, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func canonicalHost(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	port := u.Port()
	if n, err := strconv.Atoi(port); strings.HasSuffix(u.Host, ":") || port != "" &&
		(err != nil || n < 1 || n > 65535) {
		return "", errors.New("must have a port from 1 to 65535, or none")
	}
	switch {
	case strings.Contains(u.Host, "["):
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return "", errors.New("must have a valid IPv6 address in brackets")
		}
		host = "[" + addr.String() + "]"
	case host != "*" && (len(host) > 253 || !hostname().MatchString(strings.TrimPrefix(host, "*."))):
		return "", fmt.Errorf(`must name a host, "*.domain" for its subdomains, or "*" for any host`)
	}
	if port == "" || port == defaultPort[u.Scheme] {
		return host, nil
	}
	return host + ":" + port, nil
}

func checkPath(u *url.URL) error {
	clean := path.Clean("/" + u.Path)
	if strings.TrimSuffix(u.Path, "/") != strings.TrimSuffix(clean, "/") || u.RawPath != "" ||
		strings.ContainsAny(u.Path, `\*?[]{}`) {
		return errors.New(
			`must have a plain path without "..", "//", wildcards or escaped slashes; narrow it with paths`)
	}
	return nil
}

// Covers reports whether every request under inner lies under outer too. Both are results of ParseBaseURL.
func Covers(outer, inner *url.URL) bool {
	outerPath := strings.TrimSuffix(outer.Path, "/") + "/"
	innerPath := strings.TrimSuffix(inner.Path, "/") + "/"
	return outer.Scheme == inner.Scheme && outer.Port() == inner.Port() && coversHost(outer.Hostname(),
		inner.Hostname()) &&
		strings.HasPrefix(innerPath, outerPath)
}

// CheckCredentialURL checks that a credential may be sent to what is under base, a result of ParseBaseURL: it names a
// host, or a domain below a top-level one, and nobody on the way can read along, which means https, or an address of
// the machine itself: "localhost" or a loopback address.
func CheckCredentialURL(base *url.URL) error {
	domain, wildcard := strings.CutPrefix(base.Hostname(), "*.")
	switch {
	case base.Hostname() == "*", wildcard && !strings.Contains(domain, "."):
		return errors.New("must name the host that gets the credential")
	case !address.IsConfidential(base):
		return errors.New(`must start with "https://", because a credential is sent along`)
	}
	return nil
}

func coversHost(outer, inner string) bool {
	if outer == "*" || outer == inner {
		return true
	}
	domain, wildcard := strings.CutPrefix(outer, "*.")
	return wildcard && strings.HasSuffix(inner, "."+domain)
}
