package httpbroker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	// maxRequestHeader limits the names and values that a guest sets, in bytes; maxRequestFields limits their number.
	maxRequestHeader = 32 << 10
	maxRequestFields = 100
)

// reservedHeaders are the request headers that a guest cannot set, because the host sets them, or because servers and
// proxies trust them for the target, the framing, the origin or the sender of a request, or for another method or path
// than the rules checked, or because a cloud's metadata service answers only to them. They have the form of
// comparableName.
var reservedHeaders = []string{
	"accept-encoding", "akamai-client-ip", "ali-cdn-real-ip", "alt-used", "cdn-loop", "cdn-src-ip", "client-ip",
	"client-true-ip", "coming-from", "do-connecting-ip", "connection", "content-length", "early-data", "expect",
	"fastly-client-ip", "fly-client-ip", "forwarded",
	"forwarded-for", "forwarded-for-ip", "forwarded-host", "forwarded-proto", "front-end-https", "host",
	"http-client-ip", "http2-settings", "incap-client-ip", "metadata", "metadata-flavor",
	"keep-alive", "max-forwards",
	"remote-addr", "remote-host", "remote-user", "te", "trailer", "trailers", "transfer-encoding", "true-client-ip",
	"upgrade", "via", "wl-proxy-client-ip",
	"x-aliyun-ecs-metadata-token", "x-backend-host", "x-client-ip", "x-cluster-client-ip",
	"x-coming-from", "x-custom-ip-authorization", "x-forward-for", "x-forwarded", "x-forwarder-for",
	"x-google-metadata-request", "x-host", "x-http-host-override", "x-ip",
	"x-middleware-subrequest", "x-originating-ip",
	"x-nf-client-connection-ip", "x-proxyuser-ip", "x-real-ip", "x-remote-addr", "x-remote-host", "x-remote-ip",
	"x-remote-user", "x-sucuri-clientip", "x-true-client-ip", "x-true-ip", "x-url-scheme",
	"http-method", "http-method-override", "method-override", "x-http-method", "x-http-method-override",
	"x-method", "x-method-override",
	"x-http-destinationurl", "x-http-path-override", "x-http-url-override",
}

// reservedPrefixes are prefixes of further reserved headers.
var reservedPrefixes = []string{
	"cf-connecting-", "cf-visitor", "cf-ipcountry", "cf-pseudo-", "proxy-", "x-amzn-oidc-", "x-appengine-", "x-azure-",
	"x-arr-", "x-auth-request-", "x-authenticated-", "x-aws-ec2-metadata-", "x-webauth-",
	"x-envoy-", "x-forwarded-", "x-goog-authenticated-", "x-goog-iap-", "x-ms-client-principal",
	"x-original-", "x-override-", "x-proxy-", "x-rewrite-", "x-ssl-client-", "x-client-cert",
}

func isReserved(name string) bool {
	name = comparableName(name)
	return slices.Contains(reservedHeaders, name) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// comparableName normalizes a header name like gateways to programs (CGI, WSGI, Rack, PHP), for which names are equal
// if they differ only in case and in characters other than letters and digits.
func comparableName(name string) string {
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

// requestHeader returns the headers of a guest's request, without reserved ones. Malformed headers are an error.
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
			if !isReserved(name) && !hops[comparableName(name)] {
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

// connectionNames returns the names in a guest's Connection header, which are hop-by-hop headers (RFC 9110, section
// 7.6.1).
func connectionNames(guest map[string][]string) map[string]bool {
	names := map[string]bool{}
	for name, values := range guest {
		if own := comparableName(name); own == "connection" || own == "proxy-connection" {
			for list := range strings.SplitSeq(strings.Join(values, ","), ",") {
				names[comparableName(strings.TrimSpace(list))] = true
			}
		}
	}
	return names
}

// crossOrigin are the request headers that are sent after a redirect to another origin. All others may be credentials,
// because many services use their own header for them.
var crossOrigin = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type",
	"Pragma", "Range", "User-Agent",
}

func keepCrossOrigin(h http.Header) {
	for name := range h {
		if !slices.Contains(crossOrigin, name) {
			delete(h, name)
		}
	}
}

// hopByHop are the hop-by-hop response headers (RFC 9110, section 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

// dropHopByHop removes hop-by-hop headers, including those that Connection names.
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
