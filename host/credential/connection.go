package credential

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
)

const (
	// renewBefore is how long before its expiry an access token is renewed. The old one still works then, which freee
	// requires. Tokens with a lifetime below an hour are renewed after three quarters of it.
	renewBefore = 15 * time.Minute
	// pause is the minimum time between two renewals, and the minimum age of a refused token for which a renewal is
	// attempted.
	pause = 30 * time.Second
	// lostTime is the time after which the unfinished renewal of another replica counts as failed, although its lock is
	// free: that replica may have lost the database and still be running the renewal. It is longer than exchangeTime,
	// to allow for clock differences.
	lostTime = 2 * time.Minute
	// lockTime is the timeout for waiting for a renewal of another process, exchangeTime that of a renewal.
	lockTime     = 2 * time.Minute
	exchangeTime = time.Minute
)

// connection is a credential that the operator authorized, with an access token that it renews.
type connection struct {
	broker *Broker
	id     id
	spec   Spec
	secret *secret.Secret // of the client

	flight singleflight.Group

	mu sync.Mutex // guards the fields below
	// failed is the time of the last failed attempt, with its access token and its error.
	failed     time.Time
	failedWith string
	reason     error
	// unsaved is the error for which a new token is not stored yet.
	unsaved error
}

func (c *connection) credential(ctx context.Context) (*broker.Credential, error) {
	r, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	now := c.broker.vault.now()
	if !r.due(now) || r.usable(now) && (r.Ended != "" || !r.Renewing.IsZero()) {
		return c.header(r), nil
	}
	fresh, err := c.renewed(ctx, r)
	if err == nil {
		return c.header(fresh), nil
	}
	if r.usable(now) && ctx.Err() == nil && c.notStored() == nil {
		return c.header(r), nil
	}
	return nil, err
}

// load reads the connection from the store, because another process may have renewed it.
func (c *connection) load(ctx context.Context) (*record, error) {
	if err := c.notStored(); err != nil {
		return nil, unusablef(err, "the renewed credential %s cannot be stored: the cause is in hako's log", c.id)
	}
	r, err := c.broker.vault.get(ctx, c.id)
	if err != nil {
		return nil, c.storeError(ctx, err)
	}
	if r == nil {
		return nil, unusablef(nil, "the credential %s is not connected: the operator runs hako connect %s", c.id,
			c.id.arguments())
	}
	return r, nil
}

func (c *connection) storeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return unusablef(err, "the credential %s cannot be read from the store: see hako connect status", c.id)
}

// due reports whether it is time to renew r.
func (r *record) due(now time.Time) bool {
	if r.Expires.IsZero() {
		return false
	}
	early := min(renewBefore, r.Expires.Sub(r.Issued)/4)
	return !now.Before(r.Expires.Add(-early))
}

// usable reports whether the access token is still valid.
func (r *record) usable(now time.Time) bool { return r.Expires.IsZero() || now.Before(r.Expires) }

func (c *connection) header(r *record) *broker.Credential {
	h := header(c.spec, r.AccessToken, r.Connection)
	h.Public = r.Public
	h.Renewal = map[string]string{broker.RenewCommand: "hako connect " + c.id.arguments()}
	return h
}

// renew returns another token if the refused one is not the newest, or is old.
func (c *connection) renew(ctx context.Context, refused *broker.Credential, status int,
	body []byte) (*broker.Credential, error) {
	if !c.expired(status, body) {
		return nil, nil
	}
	r, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	if newest := c.header(r); newest.Value != refused.Value {
		return newest, nil
	}
	if r.Ended == "" && c.broker.vault.now().Sub(r.Issued) < pause {
		return nil, nil // a new token would be refused too
	}
	fresh, err := c.renewed(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.header(fresh), nil
}

// expired reports whether a response means, or may mean, that the token has expired.
func (c *connection) expired(status int, body []byte) bool {
	var refusal struct {
		Code string `json:"code"`
	}
	code := presets[c.spec.Provider].expiredCode
	return status == http.StatusUnauthorized || code != "" && json.Unmarshal(body,
		&refusal) == nil && refusal.Code == code
}

// client returns a form with the client's credentials.
func (c *connection) client(ctx context.Context, p *party) (url.Values, error) {
	form := url.Values{"client_id": {p.ClientID}}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	if p.ClientSecret != "" {
		form.Set("client_secret", p.ClientSecret)
	}
	if c.spec.ClientSecret.IsZero() {
		return form, nil
	}
	secret, err := c.secret.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the client secret: %w", err)
	}
	form.Set("client_secret", secret)
	return form, nil
}

// record returns the record of a reply. old is the renewed record, or nil.
func (c *connection) record(reply *tokenReply, old *record) *record {
	now := c.broker.vault.now()
	r := &record{
		AccessToken: reply.AccessToken, RefreshToken: reply.RefreshToken, Issued: reply.issued(now),
		Expires: reply.expires(now),
		Public:  reply.facts(presets[c.spec.Provider].public),
	}
	if old == nil {
		r.Connection = rand.Text()
		return r
	}
	r.Connection, r.Party = old.Connection, old.Party
	if r.RefreshToken == "" {
		r.RefreshToken = old.RefreshToken // the old one stays valid (RFC 6749, section 6)
	}
	for name, value := range old.Public {
		if _, ok := r.Public[name]; !ok {
			r.Public[name] = value
		}
	}
	return r
}

func (c *connection) status(ctx context.Context) Status {
	r, err := c.broker.vault.get(ctx, c.id)
	if err != nil {
		return Status{State: Unusable, Remedy: err.Error()}
	}
	connect := "hako connect " + c.id.arguments()
	if r != nil && !r.Renewing.IsZero() && r.Ended == "" {
		r = c.afterCrash(ctx, r)
	}
	if r == nil {
		return Status{State: NotConnected, Remedy: connect}
	}
	s := Status{State: Ready, Public: r.Public, Expires: r.Expires, Renewed: r.Issued}
	if r.Failed != "" {
		s.Remedy = "the last renewal failed and will be retried: " + r.Failed
	}
	switch {
	case r.Ended != "":
		s.State, s.Remedy = Reconnect, connect+" ("+r.Ended+")"
	case r.Failed != "" && !r.usable(c.broker.vault.now()):
		s.State = Unusable
	case r.RefreshToken == "" && !r.usable(c.broker.vault.now()):
		s.State, s.Remedy = Reconnect, connect+" (the access token has expired, and there is no refresh token)"
	}
	return s
}

// afterCrash checks whether the process that renews r is still alive, and ends the connection if not.
func (c *connection) afterCrash(ctx context.Context, r *record) *record {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	release, err := c.lock(short)
	if err != nil {
		return r
	}
	defer release()
	if newest, err := c.broker.vault.get(ctx, c.id); err == nil && newest != nil {
		_ = c.checkRenewal(ctx, newest) // stores the result
		return newest
	}
	return r
}
