// Package outbound decides which hosts and addresses a rule allows, and connects to them.
//
// All brokers use the same form of hosts in rules: a name, an address or a wildcard, parsed by ParseHost into a Host. A
// Dialer resolves a name once, checks each address against the rule, and dials only allowed addresses. NewTransport and
// Connect are for hako's own connections.
package outbound

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const localhost = "localhost"

// breadth is the breadth of a Host. Narrower hosts sort first.
type breadth int

const (
	exactHost breadth = iota
	subdomains
	anyHost
)

// Host matches the hosts of a rule: one host, the subdomains of a domain, or any host.
type Host struct {
	breadth breadth
	name    string // without "*."; empty for anyHost
	// literal is the parsed name if it is an IP address.
	literal netip.Addr
}

// ParseHost parses "host", "*.domain" for any subdomain, or "*" for any host. A host is a name or an IP address without
// brackets.
func ParseHost(text string) (h Host, err error) {
	if text == "*" {
		return Host{breadth: anyHost}, nil
	}
	if rest, ok := strings.CutPrefix(text, "*."); ok {
		h.breadth, text = subdomains, rest
	}
	if h.name, err = CanonicalHost(text); err != nil {
		return Host{}, err
	}
	if a, err := netip.ParseAddr(h.name); err == nil {
		if h.breadth == subdomains {
			return Host{}, fmt.Errorf("host %q: an IP address has no subdomains", "*."+text)
		}
		h.literal = a
	}
	return h, nil
}

// Matches reports whether h matches host, which is in the form of CanonicalHost.
func (h Host) Matches(host string) bool {
	switch h.breadth {
	case anyHost:
		return true
	case subdomains:
		return strings.HasSuffix(host, "."+h.name)
	}
	return host == h.name
}

// Exact returns the host if h matches only one.
func (h Host) Exact() (name string, ok bool) { return h.name, h.breadth == exactHost }

// Addr returns the address if h is an IP address.
func (h Host) Addr() (a netip.Addr, ok bool) { return h.literal, h.literal.IsValid() }

// Domain returns the name in h without "*.". It is empty if h matches any host.
func (h Host) Domain() string { return h.name }

func (h Host) String() string {
	switch h.breadth {
	case anyHost:
		return "*"
	case subdomains:
		return "*." + h.name
	}
	return h.name
}

// Compare sorts more specific hosts first.
func (h Host) Compare(other Host) int {
	return cmp.Or(cmp.Compare(h.breadth, other.breadth), cmp.Compare(len(other.name), len(h.name)))
}

// CompareRules sorts more specific hosts first, then rules that allow private addresses, so that a broad rule does not
// hide one that grants more for a host.
func CompareRules(a Host, aPrivate bool, b Host, bPrivate bool) int {
	private := 0
	if aPrivate != bPrivate {
		private = 1
		if aPrivate {
			private = -1
		}
	}
	return cmp.Or(a.Compare(b), private)
}

// CanonicalPort returns a port without leading zeros.
func CanonicalPort(text string) (string, error) {
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", text)
	}
	return strconv.FormatUint(number, 10), nil
}

// CanonicalHost returns host as a lower-case ASCII name without trailing dot, or as an IP address in canonical form.
func CanonicalHost(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", fmt.Errorf("host %q has a zone", host)
		}
		return a.Unmap().String(), nil
	}
	name, err := asciiName(host)
	if err != nil {
		return "", err
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.String(), nil
	}
	// Some resolvers interpret "127.1" and "0x7f000001" as addresses.
	last := name[strings.LastIndexByte(name, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" ||
		strings.HasPrefix(last, "0x") {
		return "", fmt.Errorf("host %q is neither a name nor an IP address", host)
	}
	return name, nil
}

// asciiName maps a host name to lower-case ASCII. ASCII names may contain underscores, which IDNA does not allow.
func asciiName(host string) (string, error) {
	name := strings.ToLower(host)
	if strings.ContainsFunc(name, func(r rune) bool { return r > 0x7f }) || strings.Contains(name, "xn--") {
		var err error
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", fmt.Errorf("host %q is not a valid name: %w", host, err)
		}
	}
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 || !validLabels(name) {
		return "", fmt.Errorf("host %q is not a valid name", host)
	}
	return name, nil
}

func validLabels(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
