package bearer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/store"
)

const (
	// Delay is the time within which every replica obeys a revocation while it can read the store.
	Delay = 2 * time.Second
	// outage is the time for which tokens are trusted while the store cannot be read.
	outage = 10 * time.Second
	// misses and missEvery limit how often the store is searched for unknown tokens.
	misses    = 20
	missEvery = 100 * time.Millisecond
	// usedEvery is the resolution of Record.Used.
	usedEvery = 10 * time.Minute
	// maxTokens bounds the tokens that are valid, maxListed those that are listed.
	maxTokens = 1000
	maxListed = 2000
	// kept is the time for which revoked and expired tokens are listed.
	kept = 90 * 24 * time.Hour
	// idLength is the length of the ID at the start of a token's text, in bytes. The rest has 220 secret bits.
	idLength = len(prefix) + 6
	// maxRow bounds the texts of a token in the store, in characters.
	maxRow = 8 << 10
)

// Topic is announced in the store when tokens have been created or revoked, and users blocked.
const Topic = "bearer.tokens"

// migrations are the migrations of the table. Released ones must not change. Times are milliseconds since 1970, or 0.
var migrations = []string{`CREATE TABLE bearer_token (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	hash TEXT NOT NULL,
	person TEXT NOT NULL,
	tenant TEXT NOT NULL,
	scopes TEXT NOT NULL,
	role TEXT NOT NULL,
	expires BIGINT NOT NULL,
	created BIGINT NOT NULL,
	creator TEXT NOT NULL,
	used BIGINT NOT NULL,
	revoked BIGINT NOT NULL,
	revoker TEXT NOT NULL
)`, `CREATE TABLE bearer_block (
	issuer TEXT NOT NULL,
	person TEXT NOT NULL,
	blocked BIGINT NOT NULL,
	blocker TEXT NOT NULL,
	PRIMARY KEY (issuer, person)
)`}

// Record is a token in the store.
type Record struct {
	Token
	// ID is the beginning of the token's text.
	ID      string
	Created time.Time
	Creator string
	// Used is the last use, known to usedEvery. Zero means never.
	Used time.Time
	// Revoked is zero for a token that nobody has revoked.
	Revoked time.Time
	Revoker string
}

// Valid reports whether the token is accepted.
func (r *Record) Valid(now time.Time) bool { return r.Revoked.IsZero() && !r.Expired(now) }

// InvalidError is the error of a token that cannot be created.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

func invalid(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

var (
	// ErrTaken means that a valid token has the name already.
	ErrTaken = errors.New("a token with this name exists: take another name, or revoke that token first")
	// ErrNone means that there is no valid token with the name or ID.
	ErrNone = errors.New("there is no such token in the store: 'hako token list' shows them")
	// ErrUnavailable means that the store could not be read, so that it is unknown which tokens are revoked.
	ErrUnavailable = errors.New("the tokens in the store cannot be read")
)

// Issued are the tokens in the store. It is safe for concurrent use.
type Issued struct {
	store *store.Store
	// reading is held while the store is read.
	reading sync.Mutex
	known   atomic.Pointer[snapshot]
	misses  *rate.Limiter
}

// snapshot holds the tokens of the store at one time.
type snapshot struct {
	at time.Time // of this process's clock
	// tokens and entries have the same order.
	tokens  []Token
	entries []*entry
	blocks  map[subject]bool
	// blocking ends when a later snapshot has another block.
	blocking    context.Context
	endBlocking context.CancelFunc
}

// entry is a token in force.
type entry struct {
	id, hash string
	// revoked ends when the token is no longer in force.
	revoked context.Context
	end     context.CancelFunc
	// used is the last use, stored what the store has of it, in milliseconds since 1970.
	used, stored atomic.Int64
}

// Open returns the tokens in a store. It fails with the store's error.
func Open(ctx context.Context, s *store.Store) (*Issued, error) {
	if err := s.Migrate(ctx, "bearer", migrations...); err != nil {
		return nil, err
	}
	i := &Issued{store: s, misses: rate.NewLimiter(rate.Every(missEvery), misses)}
	return i, i.Refresh(ctx)
}

// Run keeps up with the store until ctx ends.
func (i *Issued) Run(ctx context.Context, logger *slog.Logger) {
	changes := i.store.Changes(ctx, Topic)
	ticker := time.NewTicker(Delay / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-ticker.C:
		}
		err := i.Refresh(ctx)
		if err == nil {
			err = i.saveUse(ctx)
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("read the tokens in the store", "err", err)
		}
	}
}

// Refresh reads the store.
func (i *Issued) Refresh(ctx context.Context) error {
	i.reading.Lock()
	defer i.reading.Unlock()
	return i.read(ctx)
}

// read reads the store. reading is held.
func (i *Issued) read(ctx context.Context) error {
	next := &snapshot{at: time.Now()}
	records, err := i.query(ctx, fmt.Sprintf(`revoked = 0 AND (expires = 0 OR expires > $1) ORDER BY id LIMIT %d`,
		maxTokens), i.store.Time().UnixMilli())
	if err != nil {
		return err
	}
	before, known := map[string]*entry{}, i.known.Load()
	endBlocking, err := i.readBlocks(ctx, next, known)
	if err != nil {
		return err
	}
	if known != nil {
		for _, e := range known.entries {
			before[e.id+e.hash] = e
		}
	}
	for _, r := range records {
		e := before[r.ID+r.Hash]
		if e == nil {
			e = &entry{id: r.ID, hash: r.Hash}
			e.revoked, e.end = context.WithCancel(context.Background())
			e.used.Store(millis(r.Used))
		}
		delete(before, r.ID+r.Hash)
		e.stored.Store(millis(r.Used))
		next.tokens, next.entries = append(next.tokens, r.Token), append(next.entries, e)
	}
	i.known.Store(next)
	endBlocking()
	for _, e := range before {
		e.end()
	}
	return nil
}

// Find returns the token with this text, or nil if there is none that is valid. revoked ends when the token is no
// longer. The error is ErrUnavailable.
func (i *Issued) Find(ctx context.Context, text string) (t *Token, revoked context.Context, err error) {
	if id := idOf(text); i == nil || id == "" {
		return nil, nil, nil
	}
	known, err := i.current(ctx, Delay)
	if err != nil {
		return nil, nil, err
	}
	if t = Find(known.tokens, text); t == nil && i.misses.Allow() { // it may be new
		if known, err = i.current(ctx, 0); err != nil {
			return nil, nil, err
		}
		t = Find(known.tokens, text)
	}
	now := i.store.Time()
	if t == nil || t.Expired(now) {
		return nil, nil, nil
	}
	n := slices.IndexFunc(known.entries, func(e *entry) bool { return e.hash == t.Hash })
	known.entries[n].used.Store(now.UnixMilli())
	return t, known.entries[n].revoked, nil
}

// current returns a snapshot that is younger than age, or while the store cannot be read, than outage.
func (i *Issued) current(ctx context.Context, age time.Duration) (*snapshot, error) {
	known := i.known.Load()
	if time.Since(known.at) <= age {
		return known, nil
	}
	begin := time.Now()
	i.reading.Lock()
	defer i.reading.Unlock()
	if known = i.known.Load(); time.Since(known.at) <= age || known.at.After(begin) {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Delay)
	defer cancel()
	if err := i.read(ctx); err != nil && time.Since(known.at) > outage {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return i.known.Load(), nil
}

// ForConsole reports whether a valid token is for the console, as of the last Refresh.
func (i *Issued) ForConsole() bool {
	return i != nil && slices.ContainsFunc(i.known.Load().tokens, func(t Token) bool { return t.Role != "" })
}

// ByHash returns the valid token with this hash as of the last Refresh, or nil.
func (i *Issued) ByHash(hash string, now time.Time) *Token {
	if i == nil {
		return nil
	}
	known := i.known.Load()
	for n := range known.tokens {
		if t := &known.tokens[n]; t.Hash == hash && !t.Expired(now) && time.Since(known.at) <= outage {
			return t
		}
	}
	return nil
}

// idOf returns the ID of a token, or "" for a text that is none.
func idOf(text string) string {
	if !IsToken(text) {
		return ""
	}
	return text[:idLength]
}

// List returns the tokens in the store, the newest first. Revoked and expired ones are listed for 90 days.
func (i *Issued) List(ctx context.Context) ([]*Record, error) {
	return i.query(ctx, fmt.Sprintf(`TRUE ORDER BY created DESC, id LIMIT %d`, maxListed))
}

// Create makes a token like t, whose hash is not used, for the person creator. It fails with an InvalidError, or with
// ErrTaken if a valid token in the store or one of the others has its name.
func (i *Issued) Create(ctx context.Context, t Token, creator string, others []Token) (text string,
	r *Record, err error) {
	now := i.store.Time()
	text, t.Hash = New()
	if err := t.Check(); err != nil {
		return "", nil, &InvalidError{err.Error()}
	}
	for _, scope := range t.Scopes {
		if !IsScope(scope) {
			return "", nil, invalid("%q is not an OAuth scope: scopes have no spaces, quotes or backslashes", scope)
		}
	}
	switch {
	case t.Expired(now):
		return "", nil, invalid("the end of the token has passed already")
	case t.Role != "" && (t.Tenant != "" || len(t.Scopes) > 0):
		return "", nil, invalid("a token for the console has a role, and neither tenant nor scopes")
	case slices.ContainsFunc(others, func(o Token) bool { return o.Name == t.Name }):
		return "", nil, ErrTaken
	}
	scopes, err := json.Marshal(append([]string{}, t.Scopes...))
	if err != nil {
		return "", nil, err
	}
	r = &Record{Token: t, ID: idOf(text), Created: now, Creator: creator}
	err = i.store.Update(ctx, func(tx *sql.Tx) error {
		if err := i.makeRoom(ctx, tx, t.Name, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO bearer_token (id, name, hash, person, tenant, scopes, role, expires,
			created, creator, used, revoked, revoker) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, '')`,
			r.ID, t.Name, t.Hash, t.User, t.Tenant, string(scopes), t.Role, millis(t.Expires), now.UnixMilli(), creator)
		if err != nil {
			return err
		}
		return i.store.Announce(ctx, tx, Topic)
	})
	if err != nil {
		return "", nil, err
	}
	return text, r, i.Refresh(ctx)
}

// makeRoom removes what is no longer listed, and checks that the name is free and that there are not too many tokens.
func (i *Issued) makeRoom(ctx context.Context, tx *sql.Tx, name string, now time.Time) error {
	old := now.Add(-kept).UnixMilli()
	_, err := tx.ExecContext(ctx, `DELETE FROM bearer_token WHERE revoked > 0 AND revoked < $1 OR
		expires > 0 AND expires < $1`, old)
	if err != nil {
		return err
	}
	var same, all int
	err = tx.QueryRowContext(ctx, `SELECT count(CASE WHEN name = $1 THEN 1 END), count(*) FROM bearer_token
		WHERE revoked = 0 AND (expires = 0 OR expires > $2)`, name, now.UnixMilli()).Scan(&same, &all)
	switch {
	case err != nil:
		return err
	case same > 0:
		return ErrTaken
	case all >= maxTokens:
		return invalid("there are %d valid tokens, which is the limit: revoke those that nobody uses", all)
	}
	return nil
}

// Revoke ends a token, which is named by its name or ID. Other replicas obey within Delay. It fails with ErrNone.
func (i *Issued) Revoke(ctx context.Context, which, revoker string) (*Record, error) {
	records, err := i.revoke(ctx, revoker, `(id = $3 OR name = $3)`, which)
	if err != nil || len(records) == 0 {
		return nil, errors.Join(err, ErrNone)
	}
	return records[0], nil
}

// RevokeOf ends all tokens of a user like Revoke, and returns them: of one tenant, or of all if tenant is empty.
func (i *Issued) RevokeOf(ctx context.Context, user, tenant, revoker string) ([]*Record, error) {
	return i.revoke(ctx, revoker, `CASE person WHEN '' THEN name ELSE person END = $3 AND ($4 = '' OR tenant = $4)`,
		user, tenant)
}

// revoke ends the valid tokens that where selects, whose parameters are $3 and following.
func (i *Issued) revoke(ctx context.Context, revoker, where string, args ...any) (revoked []*Record, err error) {
	args = append([]any{i.store.Time().UnixMilli(), revoker}, args...)
	var ids []string
	err = i.store.Update(ctx, func(tx *sql.Tx) (err error) {
		ids, err = store.Select(ctx, tx, store.Column[string], `UPDATE bearer_token SET revoked = $1, revoker = $2
			WHERE revoked = 0 AND (expires = 0 OR expires > $1) AND `+where+` RETURNING id`, args...)
		if err != nil || len(ids) == 0 {
			return err
		}
		return i.store.Announce(ctx, tx, Topic)
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	for _, id := range ids {
		records, err := i.query(ctx, `id = $1`, id)
		if err != nil {
			return nil, err
		}
		revoked = append(revoked, records...)
	}
	return revoked, i.Refresh(ctx)
}

// saveUse writes when tokens were used.
func (i *Issued) saveUse(ctx context.Context) error {
	for _, e := range i.known.Load().entries {
		used := e.used.Load()
		if used-e.stored.Load() < usedEvery.Milliseconds() {
			continue
		}
		err := i.store.Update(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE bearer_token SET used = $1 WHERE id = $2 AND used < $1`, used, e.id)
			return err
		})
		if err != nil {
			return err
		}
		e.stored.Store(used)
	}
	return nil
}

// query returns the tokens that where selects. It skips damaged rows.
func (i *Issued) query(ctx context.Context, where string, args ...any) ([]*Record, error) {
	list, err := store.List(ctx, i.store, scan,
		fmt.Sprintf(`SELECT id, name, hash, person, tenant, scopes, role, expires,
		created, creator, used, revoked, revoker FROM bearer_token WHERE length(id) + length(name) + length(hash) +
		length(person) + length(tenant) + length(scopes) + length(role) + length(creator) + length(revoker) <= %d AND %s`,
			maxRow, where), args...)
	return slices.DeleteFunc(list, func(r *Record) bool { return r == nil }), err
}

// scan returns nil for a damaged row.
func scan(rows *sql.Rows) (*Record, error) {
	r := new(Record)
	var scopes string
	var expires, created, used, revoked int64
	err := rows.Scan(&r.ID, &r.Name, &r.Hash, &r.User, &r.Tenant, &scopes, &r.Role, &expires, &created,
		&r.Creator, &used,
		&revoked, &r.Revoker)
	if err != nil || json.Unmarshal([]byte(scopes), &r.Scopes) != nil || r.Check() != nil {
		return nil, nil // rows.Err has the errors of the store
	}
	r.Expires, r.Created, r.Used, r.Revoked = moment(expires), moment(created), moment(used), moment(revoked)
	return r, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
