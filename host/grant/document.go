package grant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/wholefile"
)

// document stores the text of a File.
type document interface {
	// read returns the text. It is empty before the first consent.
	read(ctx context.Context) ([]byte, error)
	// change replaces the text with the result of f, under an exclusive lock.
	change(ctx context.Context, f func([]byte) ([]byte, error)) error
	// String describes the document in errors.
	String() string
}

// fileDocument is a document in a file.
type fileDocument string

func (d fileDocument) String() string { return "consent file " + string(d) }

func (d fileDocument) read(context.Context) ([]byte, error) {
	data, err := os.ReadFile(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("consent file: %w", err)
	}
	return data, nil
}

func (d fileDocument) change(ctx context.Context, f func([]byte) ([]byte, error)) error {
	path := string(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("consent file: %w", err)
	}
	return wholefile.Update(ctx, path, 0o644, f)
}

// storedDocument is a document in a row of a store.
type storedDocument struct {
	store *store.Store
	// file is the consent file with the initial text.
	file fileDocument
}

// Topic is the topic of change notifications for stored consents (store.Store.Changes).
const Topic = "consents"

// LoadStored is Load for consents in a store that replicas share. The store holds them in the format of a consent file.
// If the store has never had consents, it copies the text of the file at path, which is not read again; a read-only
// store leaves the copy for later. Relative folders of mounts are relative to the directory of path. Errors of the
// store are returned too.
func LoadStored(ctx context.Context, s *store.Store, path string) (*File, error) {
	const table = `CREATE TABLE consents (id BIGINT PRIMARY KEY, text TEXT NOT NULL)`
	err := s.Migrate(ctx, "consents", table)
	if errors.Is(err, store.ErrUnprepared) {
		return Load(path)
	}
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("consent file: %w", err)
	}
	return open(ctx, path, &storedDocument{s, fileDocument(path)})
}

func (d *storedDocument) String() string { return "consents in the store " + d.store.Where() }

func (d *storedDocument) read(ctx context.Context) (data []byte, err error) {
	err = d.store.View(ctx, func(tx *sql.Tx) (err error) {
		data, err = text(ctx, tx)
		return err
	})
	if err != nil || data != nil {
		return data, err
	}
	old, err := d.file.read(ctx)
	if err != nil || old == nil {
		return nil, err
	}
	if _, err := parse(old); err != nil {
		return nil, fmt.Errorf("copy the %s to the store: %w", d.file, err)
	}
	if d.store.ReadOnly() {
		return old, nil
	}
	err = d.change(ctx, func(data []byte) ([]byte, error) {
		if data == nil { // no other replica was faster
			data = old
		}
		old = data
		return data, nil
	})
	return old, err
}

func text(ctx context.Context, tx *sql.Tx) (data []byte, err error) {
	err = tx.QueryRowContext(ctx, "SELECT text FROM consents WHERE id = 1").Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return data, err
}

func (d *storedDocument) change(ctx context.Context, f func([]byte) ([]byte, error)) error {
	return d.store.UpdateInTurn(ctx, Topic, func(tx *sql.Tx) error {
		data, err := text(ctx, tx)
		if err != nil {
			return err
		}
		if data, err = f(data); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO consents (id, text) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET "+
			"text = excluded.text", string(data))
		if err != nil {
			return err
		}
		return d.store.Announce(ctx, tx, Topic)
	})
}
