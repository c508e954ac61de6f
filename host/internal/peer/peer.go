// Package peer says where requests come from, also through proxies.
package peer

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of proxies that are believed. The zero value believes none. It is safe for concurrent use.
type Proxies struct{ networks []netip.Prefix }

// NewProxies returns the proxies at addresses and in networks (CIDR notation). The error names the first that is neither.
func NewProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, text := range list {
		network, err := parseNetwork(text)
		if err != nil {
			return Proxies{}, fmt.Errorf("trusted proxy %q: write an address, or a network as 10.0.0.0/8", text)
		}
		p.networks = append(p.networks, network)
	}
	return p, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err
}

// Address is where r comes from: the other end of the connection, or what proxies that are believed say of it in X-Forwarded-For, each of
// the one before it. Where nothing usable is said, it is the last proxy; what others say could be said by anybody.
func (p Proxies) Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if !p.trust(host) {
		return host
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && p.trust(host); i-- {
		address, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		host = address.Unmap().WithZone("").String() // a zone is any text
	}
	return host
}

func (p Proxies) trust(host string) bool {
	if len(p.networks) == 0 {
		return false
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, network := range p.networks {
		if network.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
