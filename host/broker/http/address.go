package httpbroker

import "net/netip"

// reach says what it takes to connect to an address.
type reach int

const (
	public  reach = iota // any rule
	private              // a rule with Private, or one that names the address
	named                // only a rule that names the address: a cloud's metadata service, which hands out credentials
	never                // no rule: nothing a plugin could talk to lives there
)

// special are the address blocks that are not simply public, after the IANA IPv4 and IPv6 Special-Purpose Address Registries
// (RFC 6890 and its updates). The first block that holds an address decides, so single addresses come before their block.
var special = []struct {
	prefix netip.Prefix
	kind   string
	reach  reach
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud metadata", named}, // AWS, Azure, Google Cloud and most others
	{netip.MustParsePrefix("169.254.170.2/32"), "a cloud metadata", named},   // AWS ECS task credentials
	{netip.MustParsePrefix("169.254.170.23/32"), "a cloud metadata", named},  // AWS EKS pod identity
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud metadata", named}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud metadata", named},   // Azure platform, in a public block
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud metadata", named},      // AWS: ::254 metadata, ::23 pod identity
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud metadata", named},   // Google Cloud

	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback", private},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private", private},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private", private},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private", private},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT", private}, // RFC 6598
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local", private},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking", private}, // RFC 2544; some fake-IP proxies answer with it

	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified", never}, // many systems connect to themselves
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved", never},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation", never},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay", never},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation", never},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation", never},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast", never},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved", never}, // with the broadcast address
	{netip.MustParsePrefix("0.0.0.0/0"), "a public", public},

	{netip.MustParsePrefix("::1/128"), "a loopback", private},
	{netip.MustParsePrefix("fe80::/10"), "a link-local", private},
	{netip.MustParsePrefix("fec0::/10"), "a site-local", private}, // deprecated by RFC 3879, still routed here and there
	{netip.MustParsePrefix("fc00::/7"), "a unique local", private},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local-use NAT64", private}, // RFC 8215: where the IPv4 part lies is local
	{netip.MustParsePrefix("2001::/23"), "a reserved", never},               // Teredo, ORCHID and other protocols' own
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation", never},
	{netip.MustParsePrefix("2002::/16"), "a 6to4", never}, // carries an IPv4 address; deprecated by RFC 7526
	{netip.MustParsePrefix("3fff::/20"), "a documentation", never},
	{netip.MustParsePrefix("2000::/3"), "a public", public}, // all that IANA has given out
	{netip.MustParsePrefix("::/0"), "a reserved", never},    // with unspecified, IPv4-compatible, discard-only, multicast
}

// nat64 is the well-known prefix of RFC 6052: its last four bytes are the IPv4 address that is reached.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unwrap returns the address that is reached through a: the IPv4 address inside an IPv4-mapped or NAT64 one, without zone.
func unwrap(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

func classify(a netip.Addr) (kind string, r reach) {
	a = unwrap(a)
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind, s.reach
		}
	}
	return "an invalid", never
}

// refusedAddress is the error of a name that leads to an address its rule does not reach. The text leaves the address
// out: it goes to the guest, which need not learn how a private network is laid out.
type refusedAddress struct {
	host string
	addr netip.Addr
	kind string
	need reach
}

func (e *refusedAddress) Error() string {
	text := e.host + " is at " + e.kind + " address"
	switch e.need {
	case private:
		return text + "; the operator's rule for it has to allow private addresses"
	case named:
		return text + "; only a rule whose url names that address reaches it"
	}
	return text + ", which no rule reaches"
}

// permits returns a refusedAddress unless the rule may connect to a on behalf of host. "localhost" is held to loopback
// addresses, whatever a hosts file or a resolver says (RFC 6761, section 6.3).
func (r *rule) permits(host string, a netip.Addr) error {
	kind, need := classify(a)
	var ok bool
	switch {
	case r.host == "localhost":
		ok = unwrap(a).IsLoopback()
	case a.Unmap() == r.literal:
		ok = need != never
	default:
		ok = need == public || need == private && r.private
	}
	if ok {
		return nil
	}
	return &refusedAddress{host, a, kind, need}
}
