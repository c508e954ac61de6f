// Package address classifies hosts and IP addresses by their literal form. It resolves no names.
//
// IsConfidential and IsLoopback decide where hako may connect without encryption. Hostname and IsLocalName are for the
// names by which clients address hako's own servers. Classify finds the special-purpose block of an IP address.
package address

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// IsLoopback reports whether a connection to host, in the form of url.URL.Hostname, stays on this machine: host is a
// loopback address or "localhost". It is false for names below localhost, which a resolver may look up elsewhere.
func IsLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// IsLoopbackHostport reports whether only this machine can reach a Host header or a listener's address.
func IsLoopbackHostport(hostport string) bool { return IsLoopback(Hostname(hostport)) }

// IsConfidential reports whether nobody on the way can read what is sent to u: the scheme is https, or http to this
// machine.
func IsConfidential(u *url.URL) bool {
	return u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()))
}

// Hostname returns the host of a Host header or of a listener's address, in lower case, without port, brackets and
// trailing dot.
func Hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// IsLocalName reports whether name, a result of Hostname, can only mean this machine: it is a loopback address,
// localhost or a name below it (RFC 6761, section 6.3). Other names may belong to web pages that let browsers connect
// to this machine (DNS rebinding).
func IsLocalName(name string) bool { return IsLoopback(name) || strings.HasSuffix(name, ".localhost") }

// IsPrivate reports whether host, in the form of url.URL.Hostname, is a literal address in the operator's own network
// or machine, or a name that means the machine.
func IsPrivate(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		_, need := Classify(a)
		return need == Private || need == Named || a.Unmap().IsUnspecified()
	}
	return IsLocalName(Hostname(host))
}
