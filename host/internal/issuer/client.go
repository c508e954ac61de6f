package issuer

import (
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/hako-run/hako/host/broker/outbound"
)

// NewClient returns a client for the requests to issuers. They go through proxy if it is not nil, but for those to this machine; the
// environment's proxies play no part. Redirects are left as they are.
func NewClient(proxy *url.URL) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxDocument
	outbound.UseProxy(t, func(r *http.Request) (*url.URL, error) {
		host := r.URL.Hostname()
		if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.Unmap().IsLoopback() {
			return nil, nil
		}
		return proxy, nil
	})
	return WithoutRedirects(&http.Client{Transport: t, Timeout: 10 * time.Second})
}
