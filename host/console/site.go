package console

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/hako-run/hako/host/internal/peer"
	"github.com/hako-run/hako/internal/address"
)

// Site is where people find the console.
type Site struct {
	// URL is the address from outside, "https://hako.example.com", where a proxy or a name stands before the server.
	// Empty means that people come by the server's own address.
	URL string
	// Local is the server's own address, as in "http://127.0.0.1:8420". It is where the provider of identities sends
	// people back to where URL is empty.
	Local string
	// Hosts are names that the server answers to, besides those of this machine and URL's.
	Hosts []string
	// Proxies are the addresses of proxies, or networks in CIDR notation, whose X-Forwarded-For header is believed.
	Proxies []string
}

// Check returns what is wrong with the site: an address that is none of a site, or a proxy that is neither address nor
// network.
func (s Site) Check() error {
	_, err := newSite(s)
	return err
}

// site is a Site that has been checked.
type site struct {
	// base has a scheme and a host alone.
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
	if s.base, err = url.Parse(strings.TrimSuffix(text, "/")); err != nil || s.base.Host == "" ||
		s.base.Scheme != "https" && s.base.Scheme != "http" || s.base.Path != "" || s.base.User != nil ||
		s.base.RawQuery != "" {
		return nil, fmt.Errorf("the URL %q is no address of a site, such as https://hako.example.com", text)
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

// knows reports whether the server answers to the name in the request. Others are of pages that have their visitors'
// browsers ask under a name of theirs (DNS rebinding).
func (s *site) knows(r *http.Request) bool {
	name := address.Hostname(r.Host)
	return address.IsLocalName(name) || s.hosts[name]
}

// cookie is the name of a cookie, and the path for which it is. With https the name keeps others of the same domain
// from setting it (RFC 6265bis, section 4.1.3.2); without, the port keeps several servers of one machine apart, which
// share their cookies.
func (s *site) cookie(r *http.Request, name string) (full, path string) {
	if s.secure || r.TLS != nil {
		return "__Host-hako-" + name, "/"
	}
	_, port, _ := net.SplitHostPort(r.Host)
	return "hako-" + name + "-" + port, Path
}

// setCookie sets a cookie for the browser, or with age -1 removes it.
func (s *site) setCookie(w http.ResponseWriter, r *http.Request, name, value string, age int, same http.SameSite) {
	full, path := s.cookie(r, name)
	http.SetCookie(w, &http.Cookie{
		Name: full, Value: value, Path: path, MaxAge: age, HttpOnly: true, SameSite: same,
		Secure: strings.HasPrefix(full, "__Host-"),
	})
}

// cookieValue is the value of the browser's cookie; empty if it has none.
func (s *site) cookieValue(r *http.Request, name string) string {
	full, _ := s.cookie(r, name)
	cookie, err := r.Cookie(full)
	if err != nil {
		return ""
	}
	return cookie.Value
}
