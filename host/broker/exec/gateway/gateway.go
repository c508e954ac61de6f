// Package gateway connects commands with the hosts that were granted to their plugin.
//
// A command has a network of its own, from which no route leads out. The gateway accepts connections on its loopback interface: at one address as
// a proxy, which speaks HTTP and SOCKS 5, and for each host that a grant names exactly at an address that stands for that host. It holds the
// host and port against the grants, checks the address as the HTTP broker does, connects from the host's network and copies bytes. What
// is said over a connection is not looked at.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/grant"
)

// proxyAddress is where commands find the proxy. The address is one that no server of a command's own takes by chance.
var proxyAddress = netip.MustParseAddrPort("127.64.0.1:3128")

// firstAlias is the first of the addresses that stand for granted hosts.
var firstAlias = netip.MustParseAddr("127.64.1.1")

// Options configures a Gateway.
type Options struct {
	// Plugin is the plugin's name, for errors.
	Plugin string
	// Proxy is an upstream proxy (http, https or socks5) for all connections; see outbound.Dialer. Nil means none.
	Proxy *url.URL
	// Resolver looks up host names. Nil means net.DefaultResolver.
	Resolver outbound.Resolver
	// Observe, if set, is called once for every connection when it is over or was refused, from many goroutines at once.
	Observe func(Observation)
	// Logger gets connections at debug level and refused addresses at warn. Nil discards them.
	Logger *slog.Logger
}

// Gateway connects one plugin's commands. It is safe for concurrent use.
type Gateway struct {
	plugin  string
	rules   []rule
	ports   []port
	hosts   string
	observe func(Observation)
	log     *slog.Logger
}

// rule is a grant made ready.
type rule struct {
	grant.Connect
	dialer *outbound.Dialer
}

// port is one address at which a command finds something: the proxy, or a granted host.
type port struct {
	at netip.AddrPort
	// host and number are the granted host's. Empty means the proxy.
	host, number string
}

// New returns a Gateway for granted hosts, in the form of grant.ParseConnect. The grant that says most about a host applies to it, whatever
// their order.
func New(connect []string, o Options) (*Gateway, error) {
	g := &Gateway{plugin: o.Plugin, observe: o.Observe, log: o.Logger, ports: []port{{at: proxyAddress}}}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	for _, text := range connect {
		c, err := grant.ParseConnect(text)
		if err != nil {
			return nil, fmt.Errorf("connect %q: %w", text, err)
		}
		g.rules = append(g.rules, rule{c, &outbound.Dialer{Host: c.Host, Private: c.Private, Proxy: o.Proxy, Resolver: o.Resolver}})
	}
	g.setPorts()
	slices.SortStableFunc(g.rules, func(a, b rule) int {
		private := 0
		if a.Private != b.Private {
			private = 1
			if a.Private {
				private = -1
			}
		}
		return cmp.Or(a.Host.Compare(b.Host), private)
	})
	return g, nil
}

// setPorts gives an address to each host that is granted by its name, and opens the granted ports there. Granted addresses are their own.
func (g *Gateway) setPorts() {
	hosts := []string{"127.0.0.1 localhost"}
	aliases := map[string]netip.Addr{"localhost": netip.MustParseAddr("127.0.0.1")}
	next := firstAlias
	for _, r := range g.rules {
		host, exact := r.Host.Exact()
		if !exact {
			continue
		}
		addr, literal := r.Host.Addr()
		if literal && addr.Is6() && addr.IsLinkLocalUnicast() {
			continue // has no meaning without an interface
		}
		if !literal {
			var known bool
			if addr, known = aliases[host]; !known {
				addr, aliases[host], next = next, next, next.Next()
				hosts = append(hosts, addr.String()+" "+host)
			}
		}
		number, _ := strconv.ParseUint(r.Port, 10, 16) // which ParseConnect has checked
		at := netip.AddrPortFrom(addr, uint16(number))
		if !slices.ContainsFunc(g.ports, func(p port) bool { return p.at == at }) {
			g.ports = append(g.ports, port{at, host, r.Port})
		}
	}
	g.hosts = strings.Join(hosts, "\n") + "\n"
}

// Listen are the addresses at which commands find the gateway; see confine.Spec.
func (g *Gateway) Listen() []netip.AddrPort {
	var list []netip.AddrPort
	for _, p := range g.ports {
		list = append(list, p.at)
	}
	return list
}

// Hosts is the text of the commands' hosts file.
func (g *Gateway) Hosts() string { return g.hosts }

// Environ are the variables, "NAME=value", by which programs find the proxy. Those that a program reads in lower case are there too.
func (g *Gateway) Environ() []string {
	proxy, direct := "http://"+proxyAddress.String(), "localhost,127.0.0.1,::1"
	var list []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		list = append(list, name+"="+proxy, strings.ToLower(name)+"="+proxy)
	}
	return append(list, "NO_PROXY="+direct, "no_proxy="+direct)
}

// failure is why there is no connection, in a sentence for the command and who reads its output.
type failure struct {
	outcome string
	text    string
}

func (f *failure) Error() string { return f.text }

// Outcomes of a connection: it was made, was not granted, could not be made, or was one too many.
const (
	OutcomeOK      = "ok"
	OutcomeRefused = "refused"
	OutcomeFailed  = "failed"
	OutcomeBusy    = "busy"
)

// find returns the rule for connections to a host in the form of outbound.CanonicalHost.
func (g *Gateway) find(host, number string) (*rule, *failure) {
	var granted []string
	for i := range g.rules {
		r := &g.rules[i]
		if r.Port == number && r.Host.Matches(host) {
			return r, nil
		}
		granted = append(granted, r.String())
	}
	target := net.JoinHostPort(host, number)
	return nil, &failure{OutcomeRefused, fmt.Sprintf("the connection to %s is not granted: the commands of plugin %s may connect to %s. The operator can grant it: %s, with the others",
		target, g.plugin, strings.Join(granted, ", "), g.remedy(target))}
}

// remedy is the command that grants a target.
func (g *Gateway) remedy(target string) string {
	return fmt.Sprintf("hako plugin approve %s --connect %s", g.plugin, target)
}

// dial connects to a host.
func (g *Gateway) dial(ctx context.Context, r *rule, host, number string) (net.Conn, *failure) {
	target := net.JoinHostPort(host, number)
	conn, err := r.dialer.Dial(ctx, "tcp", target)
	var refused *outbound.RefusedError
	switch {
	case err == nil:
		return conn, nil
	case errors.As(err, &refused):
		g.log.WarnContext(ctx, "command address refused", "plugin", g.plugin, "rule", r.String(), "address", refused.Addr.String())
		return nil, &failure{OutcomeRefused, fmt.Sprintf("the connection to %s is refused: %s", target, g.explain(r, target, refused))}
	case ctx.Err() != nil:
		return nil, &failure{OutcomeFailed, fmt.Sprintf("the connection to %s was given up: the command has ended", target)}
	}
	return nil, &failure{OutcomeFailed, fmt.Sprintf("the connection to %s failed: %s", target, outbound.Reason(err))}
}

// explain says why an address is refused under a rule, without the address, which the command need not learn.
func (g *Gateway) explain(r *rule, target string, refused *outbound.RefusedError) string {
	text := fmt.Sprintf("%s is at %s address, which the grant %s does not reach", refused.Host, refused.Kind, r)
	_, err := netip.ParseAddr(refused.Host)
	switch literal := err == nil; {
	case refused.Need == outbound.Never:
		return fmt.Sprintf("%s is at %s address, which no grant reaches", refused.Host, refused.Kind)
	case literal, refused.Host == "localhost":
		return text + ". The operator can grant that host itself: " + g.remedy(target) + ", with the others"
	case refused.Need == outbound.Named:
		return text + ". Only a grant that names that address does"
	}
	return text + ". The operator can grant private addresses of that host: " + g.remedy(target) + ":private, with the others"
}
