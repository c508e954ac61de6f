package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

const (
	userAgent = "hako-hr/0.1 (+https://github.com/hako-run/hako)"
	// maxBody lets an answer fit into the sandbox's memory with what is read from it. A page of 100 employees of freee's
	// has some 600 KB. A month of KING OF TIME's has some 16 MB for a company of 1,000, and is asked for in parts.
	maxBody = 8 << 20
)

// Statuses of answers. Package net/http would make the plugin half as large again.
const (
	statusOK           = 200
	statusBadRequest   = 400
	statusUnauthorized = 401
	statusForbidden    = 403
	statusNotFound     = 404
	statusTooMany      = 429
)

// client reads from a vendor's API. The host adds the credential, refreshes it, and repeats what may be repeated, so a failure that
// arrives here is final.
type client struct {
	lang language
	now  time.Time // in Japan
	name string    // of the vendor
	base string
	// maxBody bounds one answer, in bytes.
	maxBody int64
	// explain turns an answer other than 200 into an error with a remedy.
	explain func(*pdk.HTTPResponse) error
}

func (c *client) get(ctx context.Context, path string, query url.Values) (*pdk.HTTPResponse, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		URL:     target,
		Header:  map[string]string{"Accept": "application/json", "User-Agent": userAgent},
		MaxBody: c.maxBody,
	})
	if err != nil {
		return nil, c.lang.errorf("%sから %s を読めません: %w", "could not read %[2]s from %[1]s: %[3]w", c.name, path, err)
	}
	if response.Status != statusOK {
		return nil, c.explain(response)
	}
	return response, nil
}

// newClient returns the client of a vendor whose API is at a URL. The vendor sets explain.
func (s *session) newClient(name, url string) client {
	return client{lang: s.lang, now: s.now, name: name, base: strings.TrimRight(url, "/"), maxBody: maxBody}
}

// document starts reading an answer.
func (c *client) document() *document { return &document{lang: c.lang, vendor: c.name} }
