package issuer

import (
	"net/http"
	"net/url"
	"time"

	"github.com/hako-run/hako/host/broker/outbound"
)

// NewClient returns a client for the requests to issuers. They go through proxy if it is not nil, but for those to this machine; the
// environment's proxies play no part. Redirects are left as they are.
func NewClient(proxy *url.URL) *http.Client {
	t := outbound.NewTransport(proxy)
	t.MaxResponseHeaderBytes = maxDocument
	return WithoutRedirects(&http.Client{Transport: t, Timeout: 10 * time.Second})
}
