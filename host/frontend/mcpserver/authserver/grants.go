package authserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/store"
)

// migrations are the migrations of the tables. Released ones must not change. Times are milliseconds since 1970.
// Secrets are stored as hashes. A grant is a person's permission for a client; a token is its code, or one of its
// access and refresh tokens.
var migrations = []string{`CREATE TABLE oauth_client (
	id TEXT PRIMARY KEY,
	metadata TEXT NOT NULL,
	created BIGINT NOT NULL,
	used BIGINT NOT NULL
);
CREATE TABLE oauth_login (id TEXT PRIMARY KEY, browser TEXT NOT NULL, request TEXT NOT NULL, expires BIGINT NOT NULL);
CREATE TABLE oauth_grant (
	id TEXT PRIMARY KEY,
	client TEXT NOT NULL,
	person TEXT NOT NULL,
	tenant TEXT NOT NULL,
	detail TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX oauth_grant_person ON oauth_grant (person, tenant);
CREATE TABLE oauth_token (
	id TEXT PRIMARY KEY,
	grant_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	spent BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX oauth_token_grant ON oauth_token (grant_id)`}

func migrate(ctx context.Context, s *store.Store) error {
	return s.Migrate(ctx, "oauth", migrations...)
}

// endedTopic is announced when grants end before their time.
const endedTopic = "oauth.ended"

// Kinds of tokens. A kind is also the prefix of its tokens, by which people and secret scanners recognise them.
const (
	kindCode    = "hako_ac_"
	kindAccess  = "hako_at_"
	kindRefresh = "hako_rt_"
)

const (
	// maxGrants limits the grants of a person. A new one ends the oldest.
	maxGrants = 50
	// maxTokens limits the tokens of a grant. More end it: nobody refreshes every few seconds for days.
	maxTokens = 5_000
	// maxDetail limits the detail of a grant in the store, in characters. hako writes less.
	maxDetail = 200_000
)

// newToken returns a new secret of a kind, with 260 random bits.
func newToken(kind string) string { return kind + rand.Text() + rand.Text() }

// detail is the rest of a grant.
type detail struct {
	person
	// Client is the client's own name.
	Client string   `json:"name,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Redirect and Challenge are for the exchange of the code.
	Redirect  string `json:"redirect,omitempty"`
	Challenge string `json:"challenge,omitempty"`
	// Resource and Issuer must be those that are configured, or the grant is not valid.
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
}

// grant is a grant with the state of one of its tokens.
type grant struct {
	detail
	id, client string
	expires    time.Time
	// spent reports whether the token was used, tokenExpires when it ends.
	spent        bool
	tokenExpires time.Time
}

// grants are the grants and tokens of all replicas. It is safe for concurrent use.
type grants struct {
	store    *store.Store
	lifetime time.Duration
	// ended receives a value when grants may have ended.
	ended       <-chan struct{}
	revocations *revocations

	mu sync.Mutex // guards the fields below
	// verified are identities of access tokens by the hash of the token.
	verified map[string]verified
	// flushes counts how often verified was emptied.
	flushes uint64
}

type verified struct {
	identity *auth.Identity
	until    time.Time
}

const (
	// verifiedTime is the time for which a verified access token is not looked up again, unless grants end.
	verifiedTime = 10 * time.Second
	maxVerified  = 4096
)

func newGrants(s *store.Store, lifetime time.Duration, ended <-chan struct{}) *grants {
	return &grants{store: s, lifetime: lifetime, ended: ended, verified: map[string]verified{},
		revocations: &revocations{store: s, pending: map[string]revocation{}}}
}

// issue stores a new grant and returns its code.
func (g *grants) issue(ctx context.Context, a *authorization, p *person, resource, issuer string,
	now time.Time) (string, error) {
	d, err := json.Marshal(detail{*p, a.Name, a.Scopes, a.Redirect, a.Challenge, resource, issuer})
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	code, id, expires := newToken(kindCode), rand.Text(), now.Add(codeLifetime).UnixMilli()
	defer g.forget()
	return code, g.store.Update(ctx, func(tx *sql.Tx) error {
		if err := g.clean(ctx, tx, p, now); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE oauth_client SET used = $1 WHERE id = $2`, now.UnixMilli(),
			a.Client); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO oauth_grant (id, client, person, tenant, detail, created, expires)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, id, a.Client, p.User, p.Tenant, string(d), now.UnixMilli(),
			expires); err != nil {
			return err
		}
		return insertToken(ctx, tx, code, id, kindCode, expires)
	})
}

func insertToken(ctx context.Context, tx *sql.Tx, secret, grant, kind string, expires int64) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO oauth_token (id, grant_id, kind, spent, expires) VALUES ($1, $2, $3, 0, $4)`,
		hashed(secret), grant, kind, expires)
	return err
}

// clean removes what has expired, and the oldest grants of a person beyond maxGrants.
func (g *grants) clean(ctx context.Context, tx *sql.Tx, p *person, now time.Time) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM oauth_token WHERE expires <= $1 AND spent = 0 OR grant_id IN
		(SELECT id FROM oauth_grant WHERE expires <= $1)`, now.UnixMilli()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM oauth_grant WHERE expires <= $1`, now.UnixMilli()); err != nil {
		return err
	}
	surplus, err := store.Select(ctx, tx, store.Column[string],
		`SELECT id FROM oauth_grant WHERE person = $1 AND tenant = $2
		ORDER BY created DESC, id LIMIT 1000 OFFSET $3`, p.User, p.Tenant, maxGrants-1)
	if err != nil {
		return err
	}
	for _, id := range surplus {
		if err := end(ctx, g.store, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// end removes a grant and its tokens, for all replicas.
func end(ctx context.Context, s *store.Store, tx *sql.Tx, id string) error {
	for _, query := range []string{`DELETE FROM oauth_token WHERE grant_id = $1`,
		`DELETE FROM oauth_grant WHERE id = $1`} {
		if _, err := tx.ExecContext(ctx, query, id); err != nil {
			return err
		}
	}
	return s.Announce(ctx, tx, endedTopic)
}

// find returns the grant of a token, or nil if there is none or its row is damaged.
func find(ctx context.Context, tx *sql.Tx, secret, kind string) (*grant, error) {
	found := new(grant)
	var text string
	var spent, expires, tokenExpires int64
	err := tx.QueryRowContext(ctx,
		fmt.Sprintf(`SELECT g.id, g.client, g.person, g.tenant, g.detail, g.expires, t.spent, t.expires
		FROM oauth_token t JOIN oauth_grant g ON g.id = t.grant_id
		WHERE t.id = $1 AND t.kind = $2 AND length(g.detail) <= %d`, maxDetail), hashed(secret), kind).
		Scan(&found.id, &found.client, &found.User, &found.Tenant, &text, &expires, &spent, &tokenExpires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var ok bool
	if found.detail, ok = parseDetail(text, found.User, found.Tenant); !ok {
		return nil, nil
	}
	found.spent, found.expires, found.tokenExpires = spent != 0, time.UnixMilli(expires), time.UnixMilli(tokenExpires)
	return found, nil
}

// parseDetail returns the detail of a grant of a person. It reports false for a damaged one and for names that are not
// valid.
func parseDetail(text, user, tenant string) (d detail, ok bool) {
	ok = json.Unmarshal([]byte(text), &d) == nil && identity.Check(user) == nil &&
		(tenant == "" || identity.Check(tenant) == nil)
	d.User, d.Tenant = user, tenant
	return d, ok
}

// Outcomes of a redemption.
var (
	// errToken means that there is no such code or refresh token any more, or that it is not the client's.
	errToken = errors.New("the code or refresh token is not valid")
	// errReplayed means that a code or refresh token was used twice, which ended the grant.
	errReplayed = errors.New("a code or refresh token was used a second time: its login has ended")
)

// tokens is the response to a token request.
type tokens struct {
	access, refresh string
	expires         time.Duration
}

// redeem exchanges a code or a refresh token for new tokens. Each can be used once: a second use ends the grant,
// because either the client or a thief has a copy (OAuth 2.1, section 4.3.1). check reports whether this client may use
// it; a code that it refuses is spent. It returns the grant with errReplayed too.
func (g *grants) redeem(ctx context.Context, secret, kind string, now time.Time,
	check func(*grant) bool) (t *tokens, from *grant, outcome error) {
	err := g.store.Update(ctx, func(tx *sql.Tx) (err error) {
		t, outcome = nil, errToken // Update may run this twice
		if from, err = find(ctx, tx, secret, kind); err != nil || from == nil {
			return err
		}
		if from.spent {
			outcome = errReplayed
			return end(ctx, g.store, tx, from.id)
		}
		allowed := check(from) && now.Before(from.tokenExpires) && now.Before(from.expires)
		if !allowed && kind == kindRefresh {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE oauth_token SET spent = $1 WHERE id = $2`, now.UnixMilli(),
			hashed(secret)); err != nil || !allowed {
			return err
		}
		t, err = g.renew(ctx, tx, from, kind, now)
		if err == nil && t != nil {
			outcome = nil
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if outcome != nil && from != nil { // not for guesses, or anybody could keep the cache empty
		g.forget()
	}
	return t, from, outcome
}

// renew adds tokens to a grant, or ends it and returns nil if it has had too many.
func (g *grants) renew(ctx context.Context, tx *sql.Tx, from *grant, kind string, now time.Time) (*tokens, error) {
	var count int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM oauth_token WHERE grant_id = $1`,
		from.id).Scan(&count); err != nil {
		return nil, err
	}
	if count >= maxTokens {
		return nil, end(ctx, g.store, tx, from.id)
	}
	if kind == kindCode {
		from.expires = now.Add(g.lifetime)
		if _, err := tx.ExecContext(ctx, `UPDATE oauth_grant SET expires = $1 WHERE id = $2`, from.expires.UnixMilli(),
			from.id); err != nil {
			return nil, err
		}
	}
	t := &tokens{newToken(kindAccess), newToken(kindRefresh), min(accessLifetime, from.expires.Sub(now))}
	if err := insertToken(ctx, tx, t.access, from.id, kindAccess, now.Add(t.expires).UnixMilli()); err != nil {
		return nil, err
	}
	return t, insertToken(ctx, tx, t.refresh, from.id, kindRefresh, from.expires.UnixMilli())
}

// revoke ends the grant of an access or refresh token of a client. It returns nil if there is none.
func (g *grants) revoke(ctx context.Context, secret, client string) (ended *grant, err error) {
	err = g.store.Update(ctx, func(tx *sql.Tx) error {
		ended = nil // Update may run this twice
		for _, kind := range []string{kindAccess, kindRefresh} {
			found, err := find(ctx, tx, secret, kind)
			if err != nil {
				return err
			}
			if found != nil && found.client == client {
				ended = found
				return end(ctx, g.store, tx, found.id)
			}
		}
		return nil
	})
	if err != nil || ended != nil { // not for guesses
		g.forget()
	}
	return ended, err
}

// verify returns the identity of an access token, or nil if it is not valid. accept is asked once for each lookup.
func (g *grants) verify(ctx context.Context, secret string, now time.Time,
	accept func(*grant) *auth.Identity) (*auth.Identity,
	error) {
	id := hashed(secret)
	known, flushes := g.known(id)
	if known.identity != nil && now.Before(known.until) && known.identity.Revoked.Err() == nil {
		return known.identity, nil
	}
	revoked := g.revocations.of(id)
	var found *grant
	err := g.store.View(ctx, func(tx *sql.Tx) (err error) {
		found, err = find(ctx, tx, secret, kindAccess)
		return err
	})
	if err != nil {
		return nil, err
	}
	var by *auth.Identity
	if found != nil && now.Before(found.tokenExpires) && now.Before(found.expires) {
		by = accept(found)
	}
	if by == nil {
		g.revocations.end(id)
		return nil, nil
	}
	by.Revoked = revoked
	until := now.Add(verifiedTime)
	if by.Expires.Before(until) {
		until = by.Expires
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flushes == flushes { // otherwise the grant may have ended since it was read
		if len(g.verified) >= maxVerified {
			clear(g.verified)
		}
		g.verified[id] = verified{by, until}
	}
	return by, nil
}

// known returns the cached lookup of a token. If grants have ended, it clears the cache first.
func (g *grants) known(id string) (verified, uint64) {
	select {
	case <-g.ended:
		g.forget()
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.verified[id], g.flushes
}

// forget makes the next verification of each token look it up. This replica does so at once when it may have ended a
// grant; the others when they are notified.
func (g *grants) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.verified)
	g.flushes++
}
