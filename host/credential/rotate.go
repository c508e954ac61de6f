package credential

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/wholefile"
)

// Rotation is the result of Rotate.
type Rotation struct {
	// Key is the ID of the current key, Records the number of connections that were encrypted with it.
	Key     string `json:"key"`
	Records int    `json:"records"`
	// Remedy is the remaining step for the operator; empty if there is none.
	Remedy string `json:"remedy,omitempty"`
}

// Rotate encrypts all connections with a new key in one transaction. If the keys are in a local file, it inserts a new
// key before the old one and removes the old one afterwards. A crash in between leaves both, and the next Rotate
// finishes the work. With other sources, or with a shared store, it uses the newest key, which the operator must have
// inserted before. Other processes need no restart unless their keys come from their environment.
func (b *Broker) Rotate(ctx context.Context) (*Rotation, error) {
	s, err := b.vault.ready(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.vault.makeKey(ctx, s); err != nil {
		return nil, err
	}
	_, release, err := s.Lock(ctx, "credential key")
	if err != nil {
		return nil, err
	}
	defer release()
	ring, err := b.vault.newestFirst(ctx)
	if err != nil {
		return nil, err
	}
	r := &Rotation{Key: ring[0].id}
	if r.Records, err = b.vault.reencrypt(ctx, s, ring[0]); err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	r.Remedy = fmt.Sprintf("remove the old keys from %v", b.vault.keys.source)
	if file := b.vault.ownFile(); file != "" {
		if err := writeKeys(file, ring[0].text); err != nil {
			r.Remedy += ", which failed here: " + err.Error()
		} else {
			r.Remedy = ""
		}
	}
	return r, nil
}

// ownFile returns the file with the keys unless other machines have copies of it; else "".
func (v *vault) ownFile() string {
	if v.shared() {
		return ""
	}
	return v.keys.source.File
}

// newestFirst returns the keys, the one to encrypt with first. It creates a new key if there is no unused one.
func (v *vault) newestFirst(ctx context.Context) ([]key, error) {
	ring, err := v.keys.all(ctx)
	if err != nil || len(ring) > 1 {
		return ring, err
	}
	file := v.ownFile()
	if file == "" {
		everywhere := ""
		if v.shared() {
			everywhere = ", for all replicas"
		}
		return nil, fmt.Errorf("%v contains only one key: insert a new one before it, on a separate line "+
			"(openssl rand -base64 32 prints one)%s, and run this again", v.keys.source, everywhere)
	}
	if err := writeKeys(file, newKeyText(), ring[0].text); err != nil {
		return nil, fmt.Errorf("write a new key to the file: %w", err)
	}
	return v.keys.all(ctx)
}

// reencrypt encrypts all records with k in one transaction.
func (v *vault) reencrypt(ctx context.Context, s *store.Store, k key) (n int, err error) {
	err = s.Update(ctx, func(tx *sql.Tx) error {
		all, err := store.Select(ctx, tx, scanID, selectIDs)
		if err != nil {
			return err
		}
		n = len(all)
		for _, i := range all {
			if err := v.reencryptOne(ctx, tx, i, k); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO credential_key (single, key_id) VALUES (1, $1)
			ON CONFLICT (single) DO UPDATE SET key_id = excluded.key_id`, k.id)
		return err
	})
	return n, err
}

func (v *vault) reencryptOne(ctx context.Context, tx *sql.Tx, i id, k key) error {
	var keyID, sealed string
	err := tx.QueryRowContext(ctx, "SELECT key_id, sealed FROM credential WHERE tenant = $1 AND name = $2", i.tenant,
		i.name).Scan(&keyID, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	old, err := v.keys.find(ctx, keyID)
	if err != nil {
		return err
	}
	plain, err := old.open(i, sealed)
	if err != nil {
		return fmt.Errorf("the stored connection of %s cannot be decrypted: hako connect remove %s", i, i.arguments())
	}
	_, err = tx.ExecContext(ctx, "UPDATE credential SET key_id = $1, sealed = $2 WHERE tenant = $3 AND name = $4",
		k.id, k.seal(i, plain), i.tenant, i.name)
	return err
}

// writeKeys atomically and durably replaces the keys in the file.
func writeKeys(path string, texts ...string) error {
	return wholefile.WriteDurable(path, []byte(strings.Join(texts, "\n")+"\n"), 0o600)
}
