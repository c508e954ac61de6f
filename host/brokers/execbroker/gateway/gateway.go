// Package gateway connects commands with the hosts that were granted to their plugin. A Gateway belongs to one plugin,
// and Serve serves one command.
//
// A command has its own network namespace without a route to the outside. The gateway accepts connections on the
// loopback interface there: at one address as a proxy for HTTP and SOCKS 5, and at one address for each host that a
// grant names exactly. It checks host and port against the grants and the resolved address as the HTTP broker does.
// Then it connects from the host's network and copies bytes, which it does not inspect.
package gateway

import (
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

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
)

// proxyAddress is the proxy's address in the commands' network. Servers that a command starts are unlikely to use it.
var proxyAddress = netip.MustParseAddrPort("127.64.0.1:3128")

// firstAlias is the first of the loopback addresses that represent granted hosts.
var firstAlias = netip.MustParseAddr("127.64.1.1")

// Options configures a Gateway.
type Options struct {
	// Plugin is the plugin's name, for errors.
	Plugin string
	// Proxy is an upstream proxy (http, https or socks5) for all connections; see outbound.Dialer. Nil means none.
	Proxy *url.URL
	// Resolver looks up host names. Nil means net.DefaultResolver.
	Resolver outbound.Resolver
	// Observe, if set, is called once for every connection when it was closed or refused. It must be safe for
	// concurrent use.
	Observe func(Observation)
	// Logger gets connections at debug level and refused addresses at warn. Nil discards them.
	Logger *slog.Logger
}

// Gateway connects one plugin's commands. It is safe for concurrent use.
type Gateway struct {
	plugin    string
	rules     []rule
	endpoints []endpoint
	hosts     string
	observe   func(Observation)
	log       *slog.Logger
}

// rule is a parsed grant.
type rule struct {
	grant.Connect
	dialer *outbound.Dialer
}

// endpoint is one address in the command's network: of the proxy, or of a granted host.
type endpoint struct {
	at netip.AddrPort
	// host and number are the granted host and port. Empty means the proxy.
	host, number string
}

// New returns a Gateway for granted hosts, in the form of grant.ParseConnect. The most specific grant applies to a
// host, whatever their order.
func New(connect []string, o Options) (*Gateway, error) {
	g := &Gateway{plugin: o.Plugin, observe: o.Observe, log: o.Logger, endpoints: []endpoint{{at: proxyAddress}}}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	for _, text := range connect {
		c, err := grant.ParseConnect(text)
		if err != nil {
			return nil, fmt.Errorf("connect %q: %w", text, err)
		}
		g.rules = append(g.rules, rule{c, &outbound.Dialer{Host: c.Host, Private: c.Private,
			Proxy: o.Proxy, Resolver: o.Resolver}})
	}
	g.setEndpoints()
	slices.SortStableFunc(g.rules, func(a, b rule) int {
		return outbound.CompareRules(a.Host, a.Private, b.Host, b.Private)
	})
	return g, nil
}

// setEndpoints assigns a loopback address to each host that is granted by its name, for the granted ports. Hosts that
// are granted by address keep that address.
func (g *Gateway) setEndpoints() {
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
			continue // an address with a zone is not assigned
		}
		if !literal {
			var known bool
			if addr, known = aliases[host]; !known {
				addr, aliases[host], next = next, next, next.Next()
				hosts = append(hosts, addr.String()+" "+host)
			}
		}
		number, _ := strconv.ParseUint(r.Port, 10, 16) // ParseConnect has checked it
		at := netip.AddrPortFrom(addr, uint16(number))
		if !slices.ContainsFunc(g.endpoints, func(p endpoint) bool { return p.at == at }) {
			g.endpoints = append(g.endpoints, endpoint{at, host, r.Port})
		}
	}
	g.hosts = strings.Join(hosts, "\n") + "\n"
}

// Listen returns the addresses of the gateway in the commands' network; see confine.Spec.
func (g *Gateway) Listen() []netip.AddrPort {
	var list []netip.AddrPort
	for _, p := range g.endpoints {
		list = append(list, p.at)
	}
	return list
}

// Hosts returns the content of the commands' hosts file.
func (g *Gateway) Hosts() string { return g.hosts }

// Environ returns the variables, "NAME=value", that configure programs to use the proxy, in upper and in lower case.
func (g *Gateway) Environ() []string {
	proxy, direct := "http://"+proxyAddress.String(), "localhost,127.0.0.1,::1"
	var list []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		list = append(list, name+"="+proxy, strings.ToLower(name)+"="+proxy)
	}
	return append(list, "NO_PROXY="+direct, "no_proxy="+direct)
}

// failure explains why there is no connection, in a sentence for the command and the readers of its output.
type failure struct {
	outcome string
	text    string
}

func (f *failure) Error() string { return f.text }

// Outcomes of a connection: it was established, was not granted, failed, or exceeded the limit.
const (
	OutcomeOK      = "ok"
	OutcomeRefused = "refused"
	OutcomeFailed  = "failed"
	OutcomeBusy    = "busy"
)

// findRule returns the rule for connections to a host in the form of outbound.CanonicalHost.
func (g *Gateway) findRule(host, number string) (*rule, *failure) {
	var granted []string
	for i := range g.rules {
		r := &g.rules[i]
		if r.Port == number && r.Host.Matches(host) {
			return r, nil
		}
		granted = append(granted, r.String())
	}
	target := net.JoinHostPort(host, number)
	return nil, &failure{OutcomeRefused, fmt.Sprintf("the connection to %s is not granted: "+
		"the commands of plugin %s may connect to %s. The operator can grant it: %s, with the others",
		target, g.plugin, strings.Join(granted, ", "), g.remedy(target))}
}

// remedy returns the command that grants a target.
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
		g.log.WarnContext(ctx, "command address refused", "plugin", g.plugin, "rule", r.String(),
			"address", refused.Addr.String())
		return nil, &failure{OutcomeRefused, fmt.Sprintf("the connection to %s is refused: %s", target,
			g.explain(r, target, refused))}
	case ctx.Err() != nil:
		return nil, &failure{OutcomeFailed, fmt.Sprintf("the connection to %s was canceled: the command has ended",
			target)}
	}
	return nil, &failure{OutcomeFailed, fmt.Sprintf("the connection to %s failed: %s", target, outbound.Reason(err))}
}

// explain returns why a rule refuses an address. The text omits the address, which the command need not know.
func (g *Gateway) explain(r *rule, target string, refused *outbound.RefusedError) string {
	text := fmt.Sprintf("%s is at %s address, which the grant %s does not allow", refused.Host, refused.Kind, r)
	_, err := netip.ParseAddr(refused.Host)
	switch literal := err == nil; {
	case refused.Need == address.Never:
		return fmt.Sprintf("%s is at %s address, which no grant allows", refused.Host, refused.Kind)
	case literal, refused.Host == "localhost":
		return text + ". The operator can grant that host itself: " + g.remedy(target) + ", with the others"
	case refused.Need == address.Named:
		return text + ". Only a grant that names that address does"
	}
	return text + ". The operator can grant private addresses of that host: " + g.remedy(target) +
		":private, with the others"
}
