package issuer

import (
	"net/http"
	"net/url"
	"time"

	"github.com/hako-run/hako/host/outbound"
)

// NewClient returns a client for requests to issuers. It uses proxy, if it is not nil, except for requests to this
// machine, and ignores the proxies in the environment. It does not follow redirects.
func NewClient(proxy *url.URL) *http.Client {
	t := outbound.NewTransport(proxy)
	t.MaxResponseHeaderBytes = maxDocument
	return WithoutRedirects(&http.Client{Transport: t, Timeout: 10 * time.Second})
}
