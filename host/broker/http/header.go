package httpbroker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	// maxRequestHeader bounds the names and values that a guest sets, in bytes; maxRequestFields their number.
	maxRequestHeader = 32 << 10
	maxRequestFields = 100
)

// hostsOwn are the request headers that a guest cannot set, because the host does or because servers and proxies take them
// for more than the guest may say: whom the message is for, how it is framed, where it came from and who sent it, and, past the rules,
// which method or path is meant. They are as plainName has them.
var hostsOwn = []string{
	"accept-encoding", "alt-used", "cdn-loop", "client-ip", "connection", "content-length", "early-data", "expect", "fastly-client-ip", "forwarded",
	"forwarded-for", "forwarded-host", "forwarded-proto", "front-end-https", "host", "http2-settings", "keep-alive", "max-forwards",
	"remote-addr", "remote-host", "remote-user", "te", "trailer", "trailers", "transfer-encoding", "true-client-ip", "upgrade", "via", "wl-proxy-client-ip",
	"x-client-ip", "x-cluster-client-ip", "x-forwarded", "x-host", "x-http-host-override", "x-middleware-subrequest", "x-originating-ip",
	"x-real-ip", "x-remote-addr", "x-remote-ip", "x-remote-user", "x-url-scheme",
	"http-method", "http-method-override", "method-override", "x-http-method", "x-http-method-override", "x-method", "x-method-override",
	"x-http-destinationurl", "x-http-path-override", "x-http-url-override",
}

// hostsOwnPrefixes are what names among them begin with.
var hostsOwnPrefixes = []string{
	"cf-connecting-", "cf-visitor", "cf-ipcountry", "proxy-", "x-amzn-oidc-", "x-appengine-", "x-azure-", "x-arr-", "x-envoy-", "x-forwarded-", "x-goog-authenticated-", "x-goog-iap-", "x-ms-client-principal",
	"x-original-", "x-override-", "x-proxy-", "x-rewrite-", "x-ssl-client-", "x-client-cert",
}

func isHostsOwn(name string) bool {
	name = plainName(name)
	return slices.Contains(hostsOwn, name) ||
		slices.ContainsFunc(hostsOwnPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// plainName is the name of a header as servers compare it: gateways to programs (CGI, WSGI, Rack, PHP) make one name of all that differ only
// in case and in characters that are neither letters nor digits.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + ('a' - 'A')
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		}
		return '-'
	}, name)
}

// requestHeader returns what of a guest's headers is sent. The host's own are left out; malformed ones are an error.
func requestHeader(guest map[string][]string, userAgent string) (http.Header, error) {
	h := http.Header{}
	size, fields := 0, 0
	hops := connectionNames(guest)
	for name, values := range guest {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%q is not a valid header name", name)
		}
		canonical := http.CanonicalHeaderKey(name)
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return nil, fmt.Errorf("the value of header %s has control characters", canonical)
			}
			size += len(name) + len(value)
			fields++
			if !isHostsOwn(name) && !hops[plainName(name)] {
				h.Add(canonical, value)
			}
		}
	}
	if size > maxRequestHeader || fields > maxRequestFields {
		return nil, fmt.Errorf("more than %d headers or %d bytes of them", maxRequestFields, maxRequestHeader)
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", userAgent)
	}
	if h.Get("Range") == "" {
		h.Set("Accept-Encoding", "gzip, deflate")
	}
	return h, nil
}

// connectionNames are the headers that a guest's Connection header names: they end at the next server (RFC 9110, section 7.6.1).
func connectionNames(guest map[string][]string) map[string]bool {
	names := map[string]bool{}
	for name, values := range guest {
		if own := plainName(name); own == "connection" || own == "proxy-connection" {
			for list := range strings.SplitSeq(strings.Join(values, ","), ",") {
				names[plainName(strings.TrimSpace(list))] = true
			}
		}
	}
	return names
}

// harmless are the request headers that may follow a redirect to another origin. All others may be credentials: many
// services have a header of their own for them.
var harmless = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type", "Pragma", "Range", "User-Agent",
}

func keepHarmless(h http.Header) {
	for name := range h {
		if !slices.Contains(harmless, name) {
			delete(h, name)
		}
	}
}

// hopByHop are the response headers that end at the host (RFC 9110, section 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// dropHopByHop removes them and what Connection names.
func dropHopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}
