package httpbroker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/pdk/abi"
)

// Credentials provides the operator's credentials by tenant and name. *credential.Broker implements it. Unless ctx has
// ended, its errors contain an *abi.Error, whose message may be shown to guests.
type Credentials interface {
	// Credential returns the credential for a request.
	Credential(ctx context.Context, tenant, name string) (*broker.Credential, error)
	// Renew is called after a response with status 401 or 403, with the start of its body. It returns another
	// credential to try once, or nil.
	Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int,
		body []byte) (*broker.Credential, error)
}

// maxRefusal limits the body that is passed to Renew, in bytes.
const maxRefusal = 16 << 10

// authorize sets the credential of r's rule. A redirect keeps it within the origin of the first request and gets none
// elsewhere, because a redirecting server must not choose who gets the credential.
func (b *Broker) authorize(ctx context.Context, call *broker.Call, r *request) error {
	name := r.rule.credential
	asked := r.rule.placeholder == "" || r.hasPlaceholder()
	if name == "" || !asked || r.strayed || b.replay != nil {
		r.credential = nil
		return nil
	}
	if err := b.checkConfidential(r); err != nil {
		return err
	}
	c, err := b.credentials.Credential(ctx, call.Tenant, name)
	if err != nil {
		return guestError(err)
	}
	return r.setCredential(c)
}

// guestError returns the part of an error of Credentials that a guest may read.
func guestError(err error) error {
	var own *abi.Error
	if errors.As(err, &own) {
		return &caused{own, err}
	}
	return err
}

// checkConfidential returns an error if others could read the credential of r on its way.
func (b *Broker) checkConfidential(r *request) error {
	if b.credentials == nil {
		return abi.Errorf(abi.CodeCredential,
			"rule %s needs the credential %s, but no credentials are configured: set "+
				"credentials.%[2]s in hako.yaml", r.rule.name, r.rule.credential)
	}
	if r.target.scheme == "http" && (b.proxied || !address.IsLoopback(r.target.host)) {
		return abi.Errorf(abi.CodeNotGranted, "the credential %s is not sent to %s without encryption: use https",
			r.rule.credential, r.target.shown())
	}
	return nil
}

// hasPlaceholder reports whether the guest has put the placeholder of the rule's credential into a header.
func (r *request) hasPlaceholder() bool {
	text := r.placeholders[r.rule.placeholder]
	for _, values := range r.header {
		if text != "" && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, text) }) {
			return true
		}
	}
	return false
}

// fillPlaceholder puts the secret in place of its placeholder in a header that is sent. r.header keeps the placeholder,
// so that a redirect to another server cannot take the secret along.
func (r *request) fillPlaceholder(header http.Header) {
	for _, values := range header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], r.placeholders[r.rule.placeholder], r.credential.Secrets[0])
		}
	}
}

// setCredential makes c the request's credential. It returns an error if the guest has set the credential's header, or
// Range, with which a response that repeats the secret could be fetched in pieces too small for the mask.
func (r *request) setCredential(c *broker.Credential) error {
	for name := range r.header {
		plain := comparableName(name)
		if plain == comparableName(c.Header) && r.rule.placeholder == "" || plain == "range" {
			return abi.Errorf(abi.CodeInvalid,
				"the header %s cannot be set here: the host sends the credential %s with "+
					"the request", name, r.rule.credential)
		}
	}
	r.credential, r.mask = c, newMask(c.Secrets)
	return nil
}

// sendRenewing sends r, and if its credential was refused as expired, sends it again with another one.
func (b *Broker) sendRenewing(ctx context.Context, r *request) (*Response, error) {
	resp, err := b.sendRetrying(ctx, r)
	if err != nil || r.credential == nil || resp.Status != http.StatusUnauthorized &&
		resp.Status != http.StatusForbidden {
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
		return nil, guestError(err)
	}
	if err := r.setCredential(c); err != nil {
		return nil, err
	}
	return b.sendRetrying(ctx, r)
}

// peek returns the start of the body without consuming it.
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

// masked returns resp with all secrets of m masked: the credential that was sent for r, or before a redirect.
func (r *request) masked(resp *Response, m *mask) (*Response, error) {
	if m == nil {
		return resp, nil
	}
	if resp.Header.Get("Content-Encoding") != "" {
		return nil, errors.Join(abi.Errorf(abi.CodeNetwork,
			"%s %s: the response is encoded as %.20q, in which the credential cannot be detected",
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
