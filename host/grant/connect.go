package grant

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
)

// Connect allows TCP connections to one port of one or several hosts.
type Connect struct {
	Host outbound.Host
	Port string
	// Private allows addresses that are not public: private, loopback, link-local. If Host is a literal address or
	// "localhost", that address is allowed without it.
	Private bool
}

// ParseConnect parses "HOST:PORT" or "HOST:PORT:private". The host may be a name, an address (an IPv6 address in
// brackets), "*.domain" for any subdomain or "*" for any host.
func ParseConnect(text string) (c Connect, err error) {
	target, private := strings.CutSuffix(text, ":private")
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return c, errors.New("it is not HOST:PORT or HOST:PORT:private")
	}
	c.Private = private
	if c.Port, err = outbound.CanonicalPort(port); err != nil {
		return c, err
	}
	if c.Host, err = outbound.ParseHost(host); err != nil {
		return c, err
	}
	if addr, ok := c.Host.Addr(); ok {
		if _, need := address.Classify(addr); need == address.Never {
			return c, fmt.Errorf("no grant allows the address %s", addr)
		}
	}
	return c, nil
}

func (c Connect) String() string {
	text := net.JoinHostPort(c.Host.String(), c.Port)
	if c.Private {
		text += ":private"
	}
	return text
}

// checkConnect checks the hosts that commands may connect to.
func (c *Consent) checkConnect() error {
	list := c.Exec.Connect
	if len(list) > maxChosen {
		return execError(c.Name, "connect", bilingual("there are %d: name at most %d",
			"%d 個あります。%d 個以内にしてください", len(list), maxChosen))
	}
	var errs []error
	for _, text := range list {
		if _, err := ParseConnect(text); err != nil {
			errs = append(errs, execError(c.Name, "connect", bilingual("%q: %v: write a host and a port, such as "+
				"github.com:443, *.example.com:443 or 10.0.0.5:5432",
				"%[1]q: github.com:443、*.example.com:443、10.0.0.5:5432 のように、ホストとポートを書いてください (%[2]v)", text, err)))
		}
	}
	return errors.Join(errs...)
}

// portsError is the error for a consent of an older version that grants ports of any host.
func portsError(plugin string, ports []uint16) error {
	example := fmt.Sprintf("HOST:%d", ports[0])
	return execError(plugin, "connect", bilingual(
		"the consent grants ports of any host (ports: %[1]v), which hako no longer supports: name the hosts: hako "+
			"plugin approve %[2]s --connect %[3]s, or --connect '' for no network",
		"承認の内容が任意のホストのポート (ports: %[1]v) になっていますが、この指定は使えなくなりました。ホストを指定してください: hako plugin approve %[2]s --connect "+
			"%[3]s (ネットワークなしにするには --connect '')",
		ports, plugin, example))
}

// canonicalConnects returns list in canonical form. Invalid elements stay unchanged for checkConnect.
func canonicalConnects(list []string) []string {
	for i, text := range list {
		if c, err := ParseConnect(text); err == nil {
			list[i] = c.String()
		}
	}
	return list
}
