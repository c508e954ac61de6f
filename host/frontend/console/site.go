package console

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/peer"
)

// Site is the address of the console.
type Site struct {
	// URL is the external address, such as "https://hako.example.com", behind a proxy or a name. Empty means the
	// server's own address.
	URL string
	// Local is the server's own address, such as "http://127.0.0.1:8420". If URL is empty, the provider redirects to
	// it.
	Local string
	// Hosts are further host names of the server, besides those of this machine and of URL.
	Hosts []string
	// Proxies are addresses of proxies, or networks in CIDR notation, whose X-Forwarded-For header is trusted.
	Proxies []string
}

// Check returns an error for an invalid URL or proxy.
func (s Site) Check() error {
	_, err := newSite(s)
	return err
}

// site is a checked Site.
type site struct {
	// base has only a scheme and a host.
	base    *url.URL
	hosts   map[string]bool
	proxies peer.Proxies
	origins *http.CrossOriginProtection
	secure  bool
}

func newSite(options Site) (*site, error) {
	s := &site{hosts: map[string]bool{}, origins: http.NewCrossOriginProtection()}
	text := options.URL
	if text == "" {
		text = options.Local
	}
	var err error
	if s.base, err = url.Parse(strings.TrimSuffix(text, "/")); err != nil || s.base.Hostname() == "" ||
		s.base.Scheme != "https" && s.base.Scheme != "http" || s.base.Path != "" || s.base.User != nil ||
		s.base.RawQuery != "" {
		return nil, fmt.Errorf("the URL %q is not the address of a site, such as https://hako.example.com", text)
	}
	s.secure = s.base.Scheme == "https"
	if options.URL != "" {
		s.hosts[address.Hostname(s.base.Host)] = true
		if err := s.origins.AddTrustedOrigin(s.base.String()); err != nil {
			return nil, fmt.Errorf("the URL %q: %w", text, err)
		}
	}
	for _, host := range options.Hosts {
		s.hosts[address.Hostname(host)] = true
	}
	s.proxies, err = peer.NewProxies(options.Proxies)
	return s, err
}

// knows reports whether the server answers to the host name of the request. Other names may be of pages that attack
// through a visitor's browser (DNS rebinding).
func (s *site) knows(r *http.Request) bool {
	name := address.Hostname(r.Host)
	return address.IsLocalName(name) || s.hosts[name]
}

// cookies are the full names of a cookie that a request may have. The first is for sites with https: its prefix keeps
// other hosts of the domain from setting it (RFC 6265bis, section 4.1.3.2). The second is for those without, and for
// who reaches a site with https at its own machine, past the proxy, with the link of 'hako console'. The port separates
// the servers of one machine, which share their cookies.
func (s *site) cookies(r *http.Request, name string) []string {
	_, port, _ := net.SplitHostPort(r.Host)
	secure, plain := hostPrefix+"hako-"+name, "hako-"+name+"-"+port
	switch {
	case r.TLS != nil:
		return []string{secure}
	case !s.secure:
		return []string{plain}
	case r.Header.Get("Origin") == "http://"+r.Host && address.IsLocalName(address.Hostname(r.Host)):
		return []string{plain, secure}
	case address.IsLocalName(address.Hostname(r.Host)):
		return []string{secure, plain}
	}
	return []string{secure}
}

// hostPrefix is the prefix of cookies that only the host itself can set.
const hostPrefix = "__Host-"

// setCookie sets a cookie, or removes it with age -1.
func (s *site) setCookie(w http.ResponseWriter, r *http.Request, name, value string, age int, same http.SameSite) {
	full, path := s.cookies(r, name)[0], Path
	secure := strings.HasPrefix(full, hostPrefix)
	if secure {
		path = "/"
	}
	http.SetCookie(w, &http.Cookie{
		Name: full, Value: value, Path: path, MaxAge: age, HttpOnly: true, SameSite: same, Secure: secure,
	})
}

// cookieValue returns the value of a cookie, or "".
func (s *site) cookieValue(r *http.Request, name string) string {
	for _, full := range s.cookies(r, name) {
		if cookie, err := r.Cookie(full); err == nil {
			return cookie.Value
		}
	}
	return ""
}
