// Package peer determines the client address of requests. Proxies are the trusted ones; Proxies.Address returns the
// address of the client in front of them.
package peer

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of trusted proxies. The zero value trusts none. It is safe for concurrent use.
type Proxies struct{ networks []netip.Prefix }

// NewProxies parses addresses and networks (CIDR notation). The error names the first invalid one.
func NewProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, text := range list {
		network, err := parseNetwork(text)
		if err != nil {
			return Proxies{}, fmt.Errorf("trusted proxy %q: write an address, or a network such as 10.0.0.0/8", text)
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

// Address returns the client address of r: the peer of the connection or, behind trusted proxies, the last address in
// X-Forwarded-For that is no trusted proxy. Without a valid one it is the address of the last proxy. Headers from
// others are ignored, because anyone can forge them.
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
		host = address.Unmap().WithZone("").String() // a zone may be any text
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
