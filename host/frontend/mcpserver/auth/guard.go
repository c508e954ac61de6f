package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/hako-run/hako/internal/address"
)

// Guard checks the Host and Origin headers of requests against those that are allowed, which keeps web pages from using
// the endpoint through a visitor's browser: directly, or by DNS rebinding (MCP, transports, security warning). Loopback
// names are always allowed.
type Guard struct {
	origins map[string]bool
	hosts   map[string]bool
}

// NewGuard returns a Guard that allows these origins and hosts too. It fails if one of them is malformed.
func NewGuard(origins, hosts []string) (*Guard, error) {
	g := &Guard{origins: map[string]bool{}, hosts: map[string]bool{}}
	for _, text := range origins {
		origin, err := url.Parse(text)
		if err != nil || origin.Scheme == "" || origin.Hostname() == "" ||
			origin.String() != origin.Scheme+"://"+origin.Host {
			return nil, fmt.Errorf(
				"mcp server: %q is not a web origin: write it like https://app.example.com, "+
					"with the port if it is not the scheme's own",
				text,
			)
		}
		g.origins[strings.ToLower(text)] = true
	}
	for _, host := range hosts {
		if _, _, err := net.SplitHostPort(host); host == "" || strings.ContainsAny(host, "/ ") || err == nil {
			return nil, fmt.Errorf(
				"mcp server: %q is not a host name: write it without scheme, port and path, like hako.example.com",
				host,
			)
		}
		g.hosts[address.Hostname(host)] = true
	}
	return g, nil
}

// Why a Guard refuses a request.
const (
	RefusedHost   = "host"   // it names a host that is not allowed
	RefusedOrigin = "origin" // a web page of another origin sent it
)

// AllowsHost checks the Host header of a request. If it is not allowed, AllowsHost answers the request.
func (g *Guard) AllowsHost(w http.ResponseWriter, r *http.Request) bool {
	if host := address.Hostname(r.Host); address.IsLocalName(host) || g.hosts[host] {
		return true
	}
	http.Error(
		w,
		"This server does not serve the name in the Host header. "+
			"Use localhost, or add the name to its allowed hosts (http.hosts).",
		http.StatusForbidden,
	)
	return false
}

// Allows checks a request. It answers one that is not allowed, and returns why, and a CORS preflight, for which there
// is no reason.
func (g *Guard) Allows(w http.ResponseWriter, r *http.Request) (reason string, ok bool) {
	if !g.AllowsHost(w, r) {
		return RefusedHost, false
	}
	values := r.Header.Values("Origin")
	if len(values) == 1 && g.origins[strings.ToLower(values[0])] {
		return "", allowCrossOrigin(w, r)
	}
	if isCrossSite(r) {
		http.Error(
			w,
			"Web pages of other sites may not use the server. "+
				"Add their origin to its allowed origins if they should (http.origins).",
			http.StatusForbidden,
		)
		return RefusedOrigin, false
	}
	if len(values) == 0 {
		return "", true
	}
	if len(values) > 1 || !isLoopbackOrigin(values[0]) {
		http.Error(
			w,
			"Web pages of this origin may not use the server. "+
				"Add the origin to its allowed origins if they should (http.origins).",
			http.StatusForbidden,
		)
		return RefusedOrigin, false
	}
	return "", true
}

// allowCrossOrigin answers as the CORS protocol (Fetch standard, section 3.3) has it, and a preflight completely.
func allowCrossOrigin(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// isCrossSite reports whether a browser says that a page of another site has caused the request (Fetch Metadata,
// section 2.3). Browsers send no Origin with some such requests, like a link that is followed.
func isCrossSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		switch strings.ToLower(strings.TrimSpace(site)) {
		case "none", "same-origin":
		case "same-site": // another port, or another name below the same domain
			if !address.IsLocalName(address.Hostname(r.Host)) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func isLoopbackOrigin(text string) bool {
	origin, err := url.Parse(text)
	return err == nil && (origin.Scheme == "http" || origin.Scheme == "https") &&
		address.IsLocalName(address.Hostname(origin.Host))
}
