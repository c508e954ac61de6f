package credential

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// migrations of the store. credential_key contains the ID of the key for new records.
var migrations = []string{
	`CREATE TABLE credential (
		tenant TEXT NOT NULL, name TEXT NOT NULL, key_id TEXT NOT NULL, sealed TEXT NOT NULL, changed BIGINT NOT NULL,
		PRIMARY KEY (tenant, name));
	CREATE TABLE credential_key (single BIGINT PRIMARY KEY CHECK (single = 1), key_id TEXT NOT NULL)`,
}

// record is a stored connection. It is encrypted in the store.
type record struct {
	// Connection changes with every consent.
	Connection string `json:"connection"`

	AccessToken  string            `json:"accessToken"`
	RefreshToken string            `json:"refreshToken,omitempty"`
	Issued       time.Time         `json:"issued"`
	Expires      time.Time         `json:"expires,omitzero"`
	Public       map[string]string `json:"public,omitempty"`
	// Party is set if it differs from the configured one.
	Party *party `json:"party,omitempty"`

	// Renewing is the start of a renewal whose result is not stored.
	Renewing time.Time `json:"renewing,omitzero"`
	// Failed is the reason of the last failed renewal, if another may succeed.
	Failed string `json:"failed,omitempty"`
	// Ended is the reason why the connection cannot be renewed any more; empty if it can.
	Ended string `json:"ended,omitempty"`
}

// vault stores records encrypted. It is safe for concurrent use.
type vault struct {
	open   func(context.Context) (*store.Store, error)
	keys   keys
	logger *slog.Logger

	mu     sync.Mutex // guards the fields below
	store  *store.Store
	ownKey bool // the key file is the default one, and created if needed
}

// errSharedKey is the error for a shared store without a configured key: other machines could not read a generated key.
var errSharedKey = errors.New("the store is shared by replicas, which need one key for credentials: set secrets.key")

// ready opens and migrates the store.
func (v *vault) ready(ctx context.Context) (*store.Store, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store != nil {
		return v.store, nil
	}
	if v.open == nil {
		return nil, errors.New("no store is configured")
	}
	s, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	if v.keys.source.IsZero() && s.Shared() {
		return nil, errors.Join(errSharedKey, s.Close())
	}
	if err := s.Migrate(ctx, "credentials", migrations...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if v.keys.source.IsZero() {
		v.keys.source.File, v.ownKey = filepath.Join(s.Dir(), "secrets.key"), true
	}
	v.store = s
	return s, nil
}

// shared reports whether replicas share the open store.
func (v *vault) shared() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.store != nil && v.store.Shared()
}

// now returns the time of the store, or this machine's time before the store is open.
func (v *vault) now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		return time.Now()
	}
	return v.store.Time()
}

func (v *vault) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		return nil
	}
	return v.store.Close()
}

// get returns the record of i, or nil.
func (v *vault) get(ctx context.Context, i id) (*record, error) {
	r, err := v.read(ctx, i)
	if errors.Is(err, errNoKey) {
		return v.read(ctx, i) // the key may have been rotated meanwhile
	}
	return r, err
}

func (v *vault) read(ctx context.Context, i id) (*record, error) {
	s, err := v.ready(ctx)
	if err != nil {
		return nil, err
	}
	var keyID, sealed string
	err = s.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT key_id, sealed FROM credential WHERE tenant = $1 AND name = $2",
			i.tenant, i.name).Scan(&keyID, &sealed)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v.decrypt(ctx, i, keyID, sealed)
}

func (v *vault) decrypt(ctx context.Context, i id, keyID, sealed string) (*record, error) {
	k, err := v.keys.find(ctx, keyID)
	if err != nil {
		return nil, err
	}
	plain, err := k.open(i, sealed)
	if err != nil {
		return nil, fmt.Errorf("the stored connection of %s was modified, or belongs to another: remove it and "+
			"connect again", i)
	}
	r := new(record)
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, fmt.Errorf("the stored connection of %s: %w", i, err)
	}
	return r, nil
}

// put stores the record of i durably.
func (v *vault) put(ctx context.Context, i id, r *record) error {
	s, err := v.ready(ctx)
	if err != nil {
		return err
	}
	if err := v.makeKey(ctx, s); err != nil {
		return err
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		k, err := v.writingKey(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			`INSERT INTO credential (tenant, name, key_id, sealed, changed) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant, name) DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, changed = excluded.changed`,
			i.tenant, i.name, k.id, k.seal(i, plain), s.Time().Unix())
		return err
	})
}

// writingKey returns the key for new records. In a new store it is the newest key.
func (v *vault) writingKey(ctx context.Context, tx *sql.Tx) (key, error) {
	var current string
	err := tx.QueryRowContext(ctx, "SELECT key_id FROM credential_key").Scan(&current)
	if err == nil {
		return v.keys.find(ctx, current)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return key{}, err
	}
	ring, err := v.keys.all(ctx)
	if err != nil {
		return key{}, err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO credential_key (single, key_id) VALUES (1, $1)", ring[0].id)
	return ring[0], err
}

// remove deletes the record of i and reports whether it existed.
func (v *vault) remove(ctx context.Context, i id) (found bool, err error) {
	s, err := v.ready(ctx)
	if err != nil {
		return false, err
	}
	err = s.Update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM credential WHERE tenant = $1 AND name = $2", i.tenant, i.name)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		found = n > 0
		return err
	})
	return found, err
}

// list returns the IDs of all records.
func (v *vault) list(ctx context.Context) ([]id, error) {
	s, err := v.ready(ctx)
	if err != nil {
		return nil, err
	}
	return store.List(ctx, s, scanID, selectIDs)
}

const selectIDs = "SELECT tenant, name FROM credential"

func scanID(rows *sql.Rows) (i id, err error) {
	err = rows.Scan(&i.tenant, &i.name)
	return i, err
}

// makeKey creates the default key file if the store has never had a key.
func (v *vault) makeKey(ctx context.Context, s *store.Store) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ownKey {
		return nil
	}
	_, release, err := s.Lock(ctx, "credential key")
	if err != nil {
		return err
	}
	defer release()
	path := v.keys.source.File
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		used := 0
		err := s.View(ctx, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT count(*) FROM credential_key").Scan(&used)
		})
		if err != nil || used > 0 {
			return err // if the store has had one, reading reports the missing key
		}
		if err := writeKeys(path, newKeyText()); err != nil {
			return fmt.Errorf("create the key of the connections: %w", err)
		}
		v.logger.Warn("created a key that encrypts the connections: keep a copy of it, apart from backups of the store",
			"file", path)
	}
	v.ownKey = false
	return nil
}
