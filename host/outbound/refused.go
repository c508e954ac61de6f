package outbound

import (
	"net/netip"

	"github.com/hako-run/hako/internal/address"
)

// RefusedError is the error for a host with an address that its rule does not allow. The text is for guests, so it
// omits the address, which may reveal a private network.
type RefusedError struct {
	Host string
	Addr netip.Addr
	// Kind describes the address, with an article: "a private".
	Kind string
	// Need is the kind of rule that the address needs.
	Need address.Reach
}

func (e *RefusedError) Error() string {
	text := e.Host + " is at " + e.Kind + " address"
	switch e.Need {
	case address.Private:
		return text + "; the operator's rule for it must allow private addresses"
	case address.Named:
		return text + "; only a rule that names that address allows it"
	}
	return text + ", which no rule allows"
}

// checkAddress returns a RefusedError unless connections to host may use a. "localhost" may only use loopback
// addresses, whatever a hosts file or a resolver returns (RFC 6761, section 6.3).
func (d *Dialer) checkAddress(host string, a netip.Addr) error {
	kind, need := address.Classify(a)
	var ok bool
	switch {
	case d.Host.name == localhost:
		ok = address.Unwrap(a).IsLoopback()
	case a.Unmap() == d.Host.literal:
		ok = need != address.Never
	default:
		ok = need == address.Public || need == address.Private && d.Private
	}
	if ok {
		return nil
	}
	return &RefusedError{host, a, kind, need}
}
