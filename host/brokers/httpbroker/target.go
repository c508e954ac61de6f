package httpbroker

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/outbound"
)

// maxURL limits a URL of a guest or a redirect, in bytes.
const maxURL = 8 << 10

// target is a normalized URL, in the form that is checked, compared and sent. An ambiguous URL is either normalized or
// refused.
type target struct {
	scheme string // "http" or "https"
	host   string // lower-case ASCII name without trailing dot, or an IP address in canonical form without brackets
	port   string // decimal, never empty
	path   string // percent-encoded, starts with "/"; no dot segments, no empty segments
	query  string // percent-encoded, without "?"

	// readings are the decoded forms in which servers may interpret path; see the function readings.
	readings []string
}

// parseTarget normalizes a URL: case, percent-encoding and dot segments (RFC 3986, section 6.2.2), the host (UTS 46)
// and repeated slashes. It drops the fragment. It refuses user names, passwords, schemes other than http and https, and
// ambiguous URLs: numeric hosts such as "0x7f.1", zones and hidden dot segments.
func parseTarget(raw string) (target, error) {
	if len(raw) > maxURL {
		return target{}, fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, fmt.Errorf("malformed URL: %w", errors.Unwrap(err))
	}
	if err := checkForm(u); err != nil {
		return target{}, err
	}
	t := target{scheme: u.Scheme, query: escapeQuery(u.RawQuery)}
	if t.host, err = outbound.CanonicalHost(u.Hostname()); err != nil {
		return target{}, err
	}
	if t.port, err = canonicalPort(u); err != nil {
		return target{}, err
	}
	t.path = cleanPath(u.EscapedPath())
	t.readings, err = readings(t.path)
	return t, err
}

// resolve returns the target of a URL reference relative to t.
func (t *target) resolve(reference string) (target, error) {
	u, err := url.Parse(reference)
	if err != nil {
		return target{}, fmt.Errorf("malformed URL: %w", errors.Unwrap(err))
	}
	return parseTarget(t.url().ResolveReference(u).String())
}

func checkForm(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the scheme is %q: only http and https are supported", u.Scheme)
	case u.User != nil:
		return errors.New("the URL contains a user name or password: send an Authorization header instead")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("the URL has no host")
	}
	return nil
}

func canonicalPort(u *url.URL) (string, error) {
	return outbound.CanonicalPort(cmp.Or(u.Port(), defaultPort(u.Scheme)))
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// cleanPath normalizes a percent-encoded path. It keeps a trailing slash.
func cleanPath(escaped string) string {
	p := normalizeEscapes(escaped)
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		clean += "/"
	}
	return clean
}

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// normalizeEscapes decodes escapes of unreserved characters, upper-cases the others, and escapes characters that are
// invalid in a path.
func normalizeEscapes(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c, escaped := unescapeAt(p, i)
		if escaped {
			i += 2
		}
		if strings.IndexByte(unreserved, c) >= 0 || !escaped && strings.IndexByte("/:@!$&'()*+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescapeAt returns the byte at s[i], decoded if it starts an escape.
func unescapeAt(s string, i int) (c byte, escaped bool) {
	if s[i] == '%' && i+2 < len(s) {
		if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
			return byte(n), true
		}
	}
	return s[i], false
}

// unescape decodes the escapes in s once, except those of the bytes in keep.
func unescape(s, keep string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, escaped := unescapeAt(s, i)
		switch {
		case escaped && strings.IndexByte(keep, c) >= 0:
			b.WriteString(s[i : i+3])
			i += 2
		case escaped:
			i += 2
			fallthrough
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxDecodings limits the number of times that a path may change by decoding.
const maxDecodings = 3

// readings returns the decoded forms of a normalized path in which known servers and proxies may interpret it: with
// encoded slashes as data, as separators, and decoded again. A rule must allow all of them. It refuses a path with dot
// segments or control characters in one of them.
func readings(escaped string) ([]string, error) {
	all := []string{unescape(escaped, `/\`)}
	for p := escaped; ; {
		next := unescape(p, "")
		if reading := strings.ReplaceAll(next, `\`, "/"); !slices.Contains(all, reading) {
			all = append(all, reading)
		}
		if next == p {
			break
		}
		if len(all) > maxDecodings {
			return nil, errors.New("the path is percent-encoded repeatedly")
		}
		p = next
	}
	if slices.ContainsFunc(all, hidesSegments) {
		return nil, errors.New("the path contains encoded dot segments, separators or control characters")
	}
	return all, nil
}

// hidesSegments reports whether a path contains dot segments, including those with parameters ("..;x", which some
// servers drop), empty segments, or control characters.
func hidesSegments(p string) bool {
	for segment := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name == "." || name == ".." {
			return true
		}
	}
	control := func(r rune) bool { return r < 0x20 || r == 0x7f }
	return strings.Contains(p, "//") || strings.ContainsFunc(p, control)
}

// escapeQuery escapes characters that are invalid in a query.
func escapeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if c := q[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// url returns t as a *url.URL.
func (t *target) url() *url.URL {
	return &url.URL{Scheme: t.scheme, Host: t.authority(), Path: unescape(t.path, ""),
		RawPath: t.path, RawQuery: t.query}
}

// authority returns host and port as in a URL, without the scheme's default port.
func (t *target) authority() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.port != defaultPort(t.scheme) {
		host += ":" + t.port
	}
	return host
}

// origin returns scheme, host and port (RFC 6454).
func (t *target) origin() string { return t.scheme + "://" + t.authority() }

// shown returns t for messages and logs, without the query, which may contain secrets.
func (t *target) shown() string { return t.origin() + t.path }

func (t *target) String() string {
	if t.query == "" {
		return t.shown()
	}
	return t.shown() + "?" + t.query
}
