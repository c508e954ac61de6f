package address

import "net/netip"

// Reach is the kind of rule that is needed to connect to an address.
type Reach int

const (
	Public  Reach = iota // any rule
	Private              // a rule that allows private addresses, or one that names the address
	Named                // only a rule that names the address: metadata services of clouds, which hand out credentials
	Never                // no rule: not a valid destination
)

// special are the special-purpose address blocks of the IANA IPv4 and IPv6 registries (RFC 6890 and its updates). The
// first block that contains an address decides, so single addresses precede their block.
var special = []struct {
	prefix netip.Prefix
	kind   string
	reach  Reach
}{
	// AWS, Azure, Google Cloud and most others
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud metadata", Named},
	{netip.MustParsePrefix("169.254.170.2/32"), "a cloud metadata", Named},    // AWS ECS task credentials
	{netip.MustParsePrefix("169.254.170.23/32"), "a cloud metadata", Named},   // AWS EKS pod identity
	{netip.MustParsePrefix("169.254.0.23/32"), "a cloud metadata", Named},     // Tencent Cloud
	{netip.MustParsePrefix("169.254.42.42/32"), "a cloud metadata", Named},    // Scaleway
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud metadata", Named},  // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud metadata", Named},    // Azure platform, in a public block
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud metadata", Named},       // AWS: ::254 metadata, ::23 pod identity
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud metadata", Named},    // Google Cloud
	{netip.MustParsePrefix("fd00:42::42/128"), "a cloud metadata", Named},     // Scaleway
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), "a cloud metadata", Named}, // OpenStack

	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback", Private},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private", Private},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private", Private},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private", Private},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT", Private}, // RFC 6598
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local", Private},
	// RFC 2544; some fake-IP proxies answer with it
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking", Private},

	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified", Never}, // many systems connect to themselves
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved", Never},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation", Never},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay", Never},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation", Never},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation", Never},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast", Never},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved", Never}, // with the broadcast address
	{netip.MustParsePrefix("0.0.0.0/0"), "a public", Public},

	{netip.MustParsePrefix("::1/128"), "a loopback", Private},
	{netip.MustParsePrefix("fe80::/10"), "a link-local", Private},
	// deprecated by RFC 3879, still routed here and there
	{netip.MustParsePrefix("fec0::/10"), "a site-local", Private},
	{netip.MustParsePrefix("fc00::/7"), "a unique local", Private},
	// RFC 8215: the position of the IPv4 part is local
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local-use NAT64", Private},
	{netip.MustParsePrefix("2001::/23"), "a reserved", Never}, // Teredo, ORCHID and other protocols
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation", Never},
	{netip.MustParsePrefix("2002::/16"), "a 6to4", Never}, // carries an IPv4 address; deprecated by RFC 7526
	{netip.MustParsePrefix("3fff::/20"), "a documentation", Never},
	{netip.MustParsePrefix("2000::/3"), "a public", Public}, // all blocks that IANA has assigned
	// with unspecified, IPv4-compatible, discard-only, multicast
	{netip.MustParsePrefix("::/0"), "a reserved", Never},
}

// nat64 is the well-known prefix of RFC 6052. The last four bytes of its addresses are the IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Unwrap returns a without zone, or the IPv4 address in an IPv4-mapped or NAT64 address.
func Unwrap(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Classify returns the block of addresses that contains a, in words with an article ("a private"), and the kind of rule
// that a connection to a needs.
func Classify(a netip.Addr) (kind string, need Reach) {
	a = Unwrap(a)
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind, s.reach
		}
	}
	return "an invalid", Never
}
