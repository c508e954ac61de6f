package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Copy copies the database in the file from to the new file to. The copy is a consistent snapshot, even while others
// write. It is a single file, readable by this user only, checked and flushed to the disk. If Copy fails, it leaves no
// file.
func Copy(ctx context.Context, from, to string) (err error) {
	file, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := withFile(ctx, from, func(db *sqlite3.Conn) error { return copyInto(db, to) }); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if err := Check(ctx, to); err != nil {
		return err
	}
	return file.Sync()
}

func copyInto(db *sqlite3.Conn, to string) error {
	stmt, _, err := db.Prepare("VACUUM INTO ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	if err := stmt.BindText(1, to); err != nil {
		return err
	}
	return stmt.Exec()
}

// Check reads a whole database and returns an error if it is damaged.
func Check(ctx context.Context, path string) error {
	var found []string
	err := withFile(ctx, path, func(db *sqlite3.Conn) error {
		stmt, _, err := db.Prepare("PRAGMA integrity_check(3)")
		if err != nil {
			return err
		}
		defer stmt.Close()
		for stmt.Step() {
			found = append(found, stmt.ColumnText(0))
		}
		return stmt.Err()
	})
	if err == nil && (len(found) != 1 || found[0] != "ok") {
		err = errors.New(strings.Join(found, "; "))
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// withFile opens an existing database for statements of the host.
func withFile(ctx context.Context, path string, use func(*sqlite3.Conn) error) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := sqlite3.OpenContext(ctx, fileName(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.BusyTimeout(time.Minute); err != nil {
		return err
	}
	db.SetInterrupt(ctx)
	defer db.SetInterrupt(context.Background())
	return use(db)
}
