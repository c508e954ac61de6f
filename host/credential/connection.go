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
)

const (
	// earliest is how long before its expiry an access token is renewed: the old one still works then, which freee asks for. Tokens
	// that live for less than an hour are renewed after three quarters of their life.
	earliest = 15 * time.Minute
	// pause is the least time between two attempts to renew, and how old a token has to be for a refusal to count against it.
	pause = 30 * time.Second
	// lostTime is after how long a renewal is given up that another replica began, and whose lock is free: that replica may still be at it,
	// without the database. It is longer than exchangeTime, with some room for clocks that do not agree.
	lostTime = 2 * time.Minute
	// lockTime bounds the wait for a renewal of another process, exchangeTime our own.
	lockTime     = 2 * time.Minute
	exchangeTime = time.Minute
)

// connection is an access token that the operator consented to, with what renews it.
type connection struct {
	broker *Broker
	id     id
	spec   Spec
	secret secret // the client's

	flight singleflight.Group

	mu sync.Mutex // guards what follows
	// failed is when the last attempt failed, with which access token and why.
	failed     time.Time
	failedWith string
	reason     error
	// unsaved is why a new token waits to be stored.
	unsaved error
}

func newConnection(b *Broker, i id, spec Spec) *connection {
	return &connection{broker: b, id: i, spec: spec, secret: secret{source: spec.ClientSecret}}
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

// load reads the connection from the store: another process may have renewed it.
func (c *connection) load(ctx context.Context) (*record, error) {
	if err := c.notStored(); err != nil {
		return nil, unusablef(err, "the renewed credential %s cannot be stored: the operator finds the cause in hako's log", c.id)
	}
	r, err := c.broker.vault.get(ctx, c.id)
	if err != nil {
		return nil, c.storeError(ctx, err)
	}
	if r == nil {
		return nil, unusablef(nil, "the credential %s is not connected: the operator runs hako connect %s", c.id, c.id.arguments())
	}
	return r, nil
}

func (c *connection) storeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return unusablef(err, "the store does not give out the credential %s: see hako connect status", c.id)
}

// due reports that it is time to renew r.
func (r *record) due(now time.Time) bool {
	if r.Expires.IsZero() {
		return false
	}
	early := min(earliest, r.Expires.Sub(r.Issued)/4)
	return !now.Before(r.Expires.Add(-early))
}

// usable reports that the access token has not expired.
func (r *record) usable(now time.Time) bool { return r.Expires.IsZero() || now.Before(r.Expires) }

func (c *connection) header(r *record) *broker.Credential {
	h := header(c.spec, r.AccessToken, r.Connection)
	h.Public = r.Public
	h.Renewal = map[string]string{broker.RenewCommand: "hako connect " + c.id.arguments()}
	return h
}

// renew gives another token if the one refused is not the newest, or is old.
func (c *connection) renew(ctx context.Context, refused *broker.Credential, status int, body []byte) (*broker.Credential, error) {
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
		return nil, nil // a new token would fare no better
	}
	fresh, err := c.renewed(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.header(fresh), nil
}

// expired reports that an answer refuses the token for its age, or may do so.
func (c *connection) expired(status int, body []byte) bool {
	var refusal struct {
		Code string `json:"code"`
	}
	code := presets[c.spec.Provider].expiredCode
	return status == http.StatusUnauthorized || code != "" && json.Unmarshal(body, &refusal) == nil && refusal.Code == code
}

// client is a form that names the application.
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
	secret, err := c.secret.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the client secret: %w", err)
	}
	form.Set("client_secret", secret)
	return form, nil
}

// record makes a record of a reply; old is what it renews, or nil.
func (c *connection) record(reply *tokenReply, old *record) *record {
	now := c.broker.vault.now()
	r := &record{
		AccessToken: reply.AccessToken, RefreshToken: reply.RefreshToken, Issued: reply.issued(now), Expires: reply.expires(now),
		Public: reply.facts(presets[c.spec.Provider].public),
	}
	if old == nil {
		r.Connection = rand.Text()
		return r
	}
	r.Connection, r.Party = old.Connection, old.Party
	if r.RefreshToken == "" {
		r.RefreshToken = old.RefreshToken // it stays valid (RFC 6749, section 6)
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
		s.Remedy = "the last renewal failed, and is tried again: " + r.Failed
	}
	switch {
	case r.Ended != "":
		s.State, s.Remedy = Reconnect, connect+" ("+r.Ended+")"
	case r.Failed != "" && !r.usable(c.broker.vault.now()):
		s.State = Unusable
	case r.RefreshToken == "" && !r.usable(c.broker.vault.now()):
		s.State, s.Remedy = Reconnect, connect+" (the access token has expired, and there is none to renew it with)"
	}
	return s
}

// afterCrash looks whether the process that renews r still lives, and ends the connection if not.
func (c *connection) afterCrash(ctx context.Context, r *record) *record {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	release, err := c.lock(short)
	if err != nil {
		return r
	}
	defer release()
	if newest, err := c.broker.vault.get(ctx, c.id); err == nil && newest != nil {
		_ = c.mayRenew(ctx, newest) // stores what it finds
		return newest
	}
	return r
}
