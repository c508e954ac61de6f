package httpbroker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// Credentials gives out the operator's credentials, by tenant and name; *credential.Broker does. Its errors hold an *abi.Error whose
// message may be shown to guests, unless ctx has ended.
type Credentials interface {
	// Credential returns what a request is to carry.
	Credential(ctx context.Context, tenant, name string) (*broker.Credential, error)
	// Renew is told of an answer with status 401 or 403 and the start of its body. It returns another credential to try, once, or nil.
	Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int, body []byte) (*broker.Credential, error)
}

// maxRefusal is how much of a refusal's body Renew is shown, in bytes.
const maxRefusal = 16 << 10

// authorize gives r the credential of its rule. A redirect keeps one within the origin that it was applied at first, and gets none
// elsewhere: the server that redirects must not choose who gets it.
func (b *Broker) authorize(ctx context.Context, call *broker.Call, r *request) error {
	name := r.rule.credential
	if name == "" || b.replay != nil || r.strayed {
		r.credential = nil
		return nil
	}
	if err := b.mayCarry(r); err != nil {
		return err
	}
	c, err := b.credentials.Credential(ctx, call.Tenant, name)
	if err != nil {
		return forGuest(err)
	}
	return r.carry(c)
}

// forGuest leaves of an error of Credentials what a guest may read.
func forGuest(err error) error {
	var own *abi.Error
	if errors.As(err, &own) {
		return &caused{own, err}
	}
	return err
}

// mayCarry holds that a credential goes out unread by others.
func (b *Broker) mayCarry(r *request) error {
	if b.credentials == nil {
		return failf(abi.CodeCredential, "rule %s needs the credential %s, and there are no credentials here: set credentials.%[2]s in hako.yaml", r.rule.name, r.rule.credential)
	}
	if r.target.scheme == "http" && (b.proxied || !loopback(r.target.host)) {
		return failf(abi.CodeNotGranted, "the credential %s is not sent to %s without encryption: use https", r.rule.credential, r.target.shown())
	}
	return nil
}

// loopback reports a host that is this machine by its literal form.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// carry makes c the request's credential. What a guest must not set beside it is an error: the header itself, and Range, with which an
// answer that repeats the secret could be fetched in pieces that are too small to be recognised.
func (r *request) carry(c *broker.Credential) error {
	for name := range r.header {
		if plain := plainName(name); plain == plainName(c.Header) || plain == "range" {
			return failf(abi.CodeInvalid, "the header %s cannot be set here: the host sends the credential %s with the request", name, r.rule.credential)
		}
	}
	r.credential, r.mask = c, newMask(c.Secrets)
	return nil
}

// sendRenewing sends r, and once more with another credential where the first was refused for its age.
func (b *Broker) sendRenewing(ctx context.Context, r *request) (*Response, error) {
	resp, err := b.sendRetrying(ctx, r)
	if err != nil || r.credential == nil || resp.Status != http.StatusUnauthorized && resp.Status != http.StatusForbidden {
		return resp, err
	}
	body, err := resp.peek(maxRefusal)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	c, err := b.credentials.Renew(ctx, r.tenant, r.rule.credential, r.credential, resp.Status, body)
	if c == nil && err == nil {
		return resp, nil
	}
	resp.discard()
	if err != nil {
		return nil, forGuest(err)
	}
	if err := r.carry(c); err != nil {
		return nil, err
	}
	return b.sendRetrying(ctx, r)
}

// peek returns the start of the body, which stays to be read.
func (r *Response) peek(most int64) ([]byte, error) {
	start, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return nil, err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), r.Body), r.Body}
	return start, nil
}

// masked is resp without what m masks, should the server repeat it: the credential that was sent for r, or before it was redirected.
func (r *request) masked(resp *Response, m *mask) (*Response, error) {
	if m == nil {
		return resp, nil
	}
	if resp.Header.Get("Content-Encoding") != "" {
		return nil, errors.Join(failf(abi.CodeNetwork, "%s %s: the answer is encoded as %.20q, in which the credential could not be recognised",
			r.method, r.target.shown(), resp.Header.Get("Content-Encoding")), resp.Body.Close())
	}
	for name, values := range resp.Header {
		if m.inName(name) {
			delete(resp.Header, name)
		}
		for i := range values {
			values[i] = m.text(values[i])
		}
	}
	resp.Body = newMaskedBody(resp.Body, m)
	return resp, nil
}
