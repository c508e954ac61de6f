package main

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

const (
	userAgent = "hako-hr/0.1 (+https://github.com/hako-run/hako)"
	// maxBody lets an answer fit into the sandbox's memory with what is read from it. A page of 100 employees of
	// freee's has some 600 KB. A month of KING OF TIME's has some 16 MB for a company of 1,000, and is asked for in
	// parts.
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

// client reads from a vendor's API. The host adds the credential, refreshes it, and repeats what may be repeated within
// the call's time, so a failure that arrives here ends the call.
type client struct {
	lang language
	now  time.Time // in Japan
	name string    // of the vendor
	base string
	// maxBody bounds one answer, in bytes.
	maxBody int64
	// started are the requests that are under way, and arrived those that were waited for to make room, by URL.
	started map[string]*pdk.Pending
	arrived map[string]arrival
	// careful is set once the vendor holds back: then one request is under way at a time.
	careful bool
	// explain completes the error of an answer other than 200, above all with a text that has a remedy.
	explain func(*pdk.HTTPResponse, *vendorError)
}

// arrival is the answer to a request that was started, or its error.
type arrival struct {
	response *pdk.HTTPResponse
	err      error
}

const (
	// requestsAtOnce is the number of requests that a call sends at once, which is the host's limit.
	requestsAtOnce = 8
	// lowRemaining is the number of requests left in the hour at which a call stops sending several at once.
	lowRemaining = 100
)

func (c *client) get(ctx context.Context, path string, query url.Values) (*pdk.HTTPResponse, error) {
	response, err := c.fetch(ctx, c.request(path, query))
	if err != nil {
		return nil, c.lang.errorf("%sから %s を読めません: %w", "could not read %[2]s from %[1]s: %[3]w", c.name, path, err)
	}
	if response.Status != statusOK {
		return nil, c.refusal(response)
	}
	return response, nil
}

func (c *client) request(path string, query url.Values) *pdk.HTTPRequest {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return &pdk.HTTPRequest{
		URL:     target,
		Header:  map[string]string{"Accept": "application/json", "User-Agent": userAgent},
		MaxBody: c.maxBody,
	}
}

// fetch waits for the request if it was started, and sends it otherwise.
func (c *client) fetch(ctx context.Context, request *pdk.HTTPRequest) (*pdk.HTTPResponse, error) {
	if answer, ok := c.arrived[request.URL]; ok {
		delete(c.arrived, request.URL)
		return c.heed(answer.response, answer.err)
	}
	if pending, ok := c.started[request.URL]; ok {
		delete(c.started, request.URL)
		return c.heed(pending.Wait())
	}
	return c.heed(pdk.Fetch(ctx, request))
}

// heed notes whether the vendor holds back.
func (c *client) heed(response *pdk.HTTPResponse, err error) (*pdk.HTTPResponse, error) {
	if err == nil {
		remaining, unknown := strconv.Atoi(response.Header["X-Ratelimit-Remaining"])
		c.careful = c.careful || response.Status == statusTooMany || response.Status == statusForbidden ||
			unknown == nil && remaining < lowRemaining
	}
	return response, err
}

// makeRoom waits for the requests that are under way, and keeps their answers for get.
func (c *client) makeRoom() {
	for target, pending := range c.started {
		response, err := pending.Wait()
		c.arrived[target] = arrival{response, err}
	}
	clear(c.started)
}

// start sends a request whose answer get is about to be asked for. It reports false where there is no room for another;
// get then sends it.
func (c *client) start(ctx context.Context, path string, query url.Values) bool {
	request := c.request(path, query)
	if _, arrived := c.arrived[request.URL]; arrived || c.started[request.URL] != nil {
		return true
	}
	if len(c.started) == requestsAtOnce || c.careful && len(c.started) > 0 {
		return false
	}
	pending, err := pdk.Start(ctx, request)
	if err != nil {
		return false
	}
	c.started[request.URL] = pending
	return true
}

// cancel gives up the requests under a path that were started and not asked for.
func (c *client) cancel(path string) {
	for target, pending := range c.started {
		if strings.HasPrefix(target, c.base+path) {
			pending.Cancel()
			delete(c.started, target)
		}
	}
	for target := range c.arrived {
		if strings.HasPrefix(target, c.base+path) {
			delete(c.arrived, target)
		}
	}
}

// newClient returns the client of a vendor whose API is at a URL. The vendor sets explain.
func (s *session) newClient(name, url string) client {
	return client{lang: s.lang, now: s.now, name: name, base: strings.TrimRight(url, "/"), maxBody: maxBody,
		started: map[string]*pdk.Pending{}, arrived: map[string]arrival{}}
}

// refusal is the error of an answer other than 200.
func (c *client) refusal(r *pdk.HTTPResponse) error {
	e := &vendorError{status: r.Status, renewal: r.Credential, retryable: r.Status == statusTooMany || r.Status >= 500}
	if e.retryable {
		e.wait = retryAfter(r.Header["Retry-After"], c.now)
	}
	c.explain(r, e)
	return e
}

// renew returns how the operator renews a credential that the vendor refuses.
func (c *client) renew(e *vendorError, credential string) string {
	if command := e.renewal["renew_command"]; command != "" {
		return c.lang.sprintf("管理者が次のコマンドを実行してください: %s", "The operator runs: %s", command)
	}
	if setting := e.renewal["renew_setting"]; setting != "" {
		return c.lang.sprintf("管理者が新しいトークンを発行し、hako.yaml の %s が指す場所に置いてください。",
			"The operator issues a new token and puts it where %s in hako.yaml says.", setting)
	}
	return c.lang.sprintf("管理者が認証情報 %s を更新してください（状態は hako connect status で分かります）。",
		"The operator has to renew the credential %s (hako connect status shows its state).", credential)
}

// waiting returns how long to wait, or otherwise if the vendor does not say.
func (c *client) waiting(e *vendorError, otherwise string) string {
	if e.wait <= 0 {
		return otherwise
	}
	return c.lang.sprintf("%d秒後にやり直してください。", "Try again in %d seconds.", e.seconds())
}

// document starts reading an answer.
func (c *client) document() *document { return &document{lang: c.lang, vendor: c.name} }
