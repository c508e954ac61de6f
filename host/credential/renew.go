package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// renewed returns a newer record than seen. All callers of this process share one attempt. It continues if they are
// canceled, because its response must not be lost.
func (c *connection) renewed(ctx context.Context, seen *record) (*record, error) {
	result := c.flight.DoChan(seen.AccessToken, func() (any, error) {
		if err := c.pausing(seen); err != nil {
			return nil, err
		}
		return c.attempt(seen)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*record), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pausing returns the last failure with this token if it is too early for another attempt.
func (c *connection) pausing(seen *record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failedWith == seen.AccessToken && time.Since(c.failed) < pause {
		return c.reason
	}
	return nil
}

// attempt renews under a lock of all processes.
func (c *connection) attempt(seen *record) (*record, error) {
	b := c.broker
	if err := b.begin(); err != nil {
		return nil, unusablef(err, "the credential %s cannot be renewed", c.id)
	}
	defer b.working.Done()
	waiting, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	release, err := c.lock(waiting)
	if err != nil {
		return nil, c.storeError(context.Background(), err)
	}
	r, err := c.refreshTokens(seen, release)
	if err != nil {
		b.logger.Warn("a credential could not be renewed", "credential", c.id.name, "tenant", c.id.tenant, "err", err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed, c.failedWith, c.reason = time.Now(), seen.AccessToken, err
	}
	return r, err
}

func (c *connection) lock(ctx context.Context) (func(), error) {
	s, err := c.broker.vault.ready(ctx)
	if err != nil {
		return nil, err
	}
	_, release, err := s.Lock(ctx, string(c.id.additionalData()))
	return release, err
}

// refreshTokens exchanges the refresh token for a new pair of tokens. The order of its steps prevents the loss of a
// connection: it first stores that a renewal starts, which fails without a loss if the disk is full; then it sends the
// request once; then it stores the new pair before anyone uses it. It releases the lock, if necessary not before the
// pair is stored.
func (c *connection) refreshTokens(seen *record, release func()) (*record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	defer func() { release() }()
	r, err := c.load(ctx)
	if err != nil || r.AccessToken != seen.AccessToken || r.Connection != seen.Connection {
		return r, err // with a record, another process was faster
	}
	if err := c.checkRenewal(ctx, r); err != nil {
		return nil, err
	}
	next := *r
	next.Renewing = c.broker.vault.now()
	if err := c.broker.vault.put(ctx, c.id, &next); err != nil {
		return nil, c.storeError(ctx, err)
	}
	reply, err := c.requestTokens(ctx, r)
	c.broker.observe(c.id, err)
	outcome, failure := c.outcomeOf(r, reply, err)
	if err := c.broker.vault.put(ctx, c.id, outcome); err != nil {
		saving := release
		release = func() {}
		return nil, c.retrySave(outcome, err, saving)
	}
	if failure == nil {
		c.broker.logger.Info("renewed a credential", "credential", c.id.name, "tenant", c.id.tenant,
			"expires", outcome.Expires)
	}
	return outcome, failure
}

// checkRenewal checks whether r may be renewed. The caller holds the lock, so an unfinished renewal means that its
// process died, or lost the lock with its connection to a shared store.
func (c *connection) checkRenewal(ctx context.Context, r *record) error {
	switch {
	case r.Ended == "" && !r.Renewing.IsZero() && c.broker.vault.shared() &&
		c.broker.vault.now().Sub(r.Renewing) < lostTime:
		return unusablef(nil, "the credential %s is being renewed by another process: try again in a moment", c.id)
	case r.Ended == "" && !r.Renewing.IsZero():
		return c.endUnknown(ctx, r)
	case r.Ended != "":
		return c.ended(r)
	case r.RefreshToken == "":
		return unusablef(nil, "the credential %s has expired and cannot be renewed: the operator runs hako connect %s",
			c.id, c.id.arguments())
	}
	return nil
}

// endUnknown ends a connection whose refresh token may have been consumed.
func (c *connection) endUnknown(ctx context.Context, r *record) error {
	r.Ended = fmt.Sprintf("hako stopped during a renewal at %s, before the response was stored",
		r.Renewing.UTC().Format(time.RFC3339))
	if err := c.broker.vault.put(ctx, c.id, r); err != nil {
		return c.storeError(ctx, err)
	}
	return c.ended(r)
}

func (c *connection) ended(r *record) error {
	return unusablef(errors.New(r.Ended), "the credential %s has to be connected again: the operator runs hako "+
		"connect %s", c.id, c.id.arguments())
}

// requestTokens requests a new pair of tokens (RFC 6749, section 6).
func (c *connection) requestTokens(ctx context.Context, r *record) (*tokenReply, error) {
	p := c.partyOf(r)
	form, err := c.client(ctx, p)
	if err != nil {
		return nil, &tokenError{outcome: Unreachable, err: err}
	}
	form.Set("grant_type", "refresh_token")
	form.Set("refresh_token", r.RefreshToken)
	return c.broker.ask(ctx, p.TokenURL, form)
}

// outcomeOf returns the record to store after a renewal of r with the given result, and the error for the callers.
func (c *connection) outcomeOf(r *record, reply *tokenReply, failure error) (*record, error) {
	if failure == nil {
		return c.record(reply, r), nil
	}
	outcome := *r
	var own *tokenError
	switch errors.As(failure, &own); own.outcome { // all errors of ask have this type
	case Revoked:
		outcome.Ended = own.Error()
	case Lost:
		outcome.Ended = fmt.Sprintf("%v; the refresh token is valid once, so it is not sent again", own)
	default:
		outcome.Failed = own.Error()
		return &outcome, unusablef(failure, "the credential %s cannot be renewed at the moment: try again later", c.id)
	}
	c.broker.logger.Error("a credential has to be connected again: run hako connect "+c.id.arguments(),
		"credential", c.id.name, "tenant", c.id.tenant, "err", failure)
	return &outcome, c.ended(&outcome)
}

// observe reports an attempt that sent a request.
func (b *Broker) observe(i id, err error) {
	outcome := Renewed
	if own := (*tokenError)(nil); errors.As(err, &own) {
		outcome = own.outcome
	}
	b.options.Observe(Renewal{i.name, outcome})
}
