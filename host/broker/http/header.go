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
// for more than the guest may say: whom the message is for, how it is framed, where it came from, and, past the rules, which
// method or path is meant. Names that start with "Proxy-" or "X-Forwarded-" are among them.
var hostsOwn = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Forwarded", "Host", "Http2-Settings", "Keep-Alive", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Real-Ip",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url",
}

func isHostsOwn(name string) bool {
	return slices.Contains(hostsOwn, name) || strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}

// requestHeader returns what of a guest's headers is sent. The host's own are left out; malformed ones are an error.
func requestHeader(guest map[string][]string, userAgent string) (http.Header, error) {
	h := http.Header{}
	size, fields := 0, 0
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
			if !isHostsOwn(canonical) {
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
