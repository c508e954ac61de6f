package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// migrate applies the missing migrations, all or none of them. A concurrent process waits and then finds none missing.
func (db *DB) migrate(ctx context.Context) error {
	c, err := db.acquire(ctx, true)
	if err != nil {
		return db.publicError(ctx, nil, err)
	}
	defer db.release(c)
	if n, err := db.applied(ctx, c); err != nil || n == len(db.options.Migrations) {
		return err // usually nothing is missing, and no lock is needed
	}
	// Foreign keys cannot be disabled in a transaction, and a table cannot be rebuilt with them enabled. So they are
	// disabled before it and checked at its end, and the connection is not reused.
	c.broken = true
	if err := c.execTrusted(ctx, "PRAGMA foreign_keys = off; BEGIN IMMEDIATE"); err != nil {
		return db.publicError(ctx, c, err)
	}
	if err := db.applyMissing(ctx, c); err != nil {
		return err
	}
	return db.publicError(ctx, c, c.execTrusted(ctx, "COMMIT"))
}

func (db *DB) applyMissing(ctx context.Context, c *conn) error {
	applied, err := db.applied(ctx, c)
	if err != nil {
		return err
	}
	for i, migration := range db.options.Migrations[applied:] {
		err := c.apply(ctx, applied+i+1, migration)
		if err == nil {
			continue
		}
		failure, fault := db.explain(ctx, c, err, migration)
		if fault {
			return db.fault(failure, err)
		}
		return abi.Errorf(failure.Code, "migration %d of the plugin's database fails, so nothing was changed: %s",
			applied+i+1, failure.Message)
	}
	return nil
}

const createMigrations = `CREATE TABLE IF NOT EXISTS ` + migrationTable + ` (
	step INTEGER PRIMARY KEY, checksum TEXT NOT NULL, applied INTEGER NOT NULL) STRICT`

// applied returns the number of applied migrations. It fails unless they are the first ones of the plugin.
func (db *DB) applied(ctx context.Context, c *conn) (int, error) {
	sums, err := c.checksums(ctx)
	if err != nil {
		return 0, db.publicError(ctx, c, err)
	}
	known := db.options.Migrations
	if len(sums) > len(known) {
		return 0, abi.Errorf(abi.CodeInvalid,
			"%d migrations were applied to the plugin's database, and this version of "+
				"the plugin knows %d: "+
				"a newer version has used it, so install that again, or restore an older backup", len(sums), len(known))
	}
	for i, sum := range sums {
		if sum != checksum(known[i]) {
			return 0, abi.Errorf(abi.CodeInvalid, "migration %d of the plugin differs from the applied one: "+
				"a released migration must not be edited: undo the edit, and append another migration", i+1)
		}
	}
	return len(sums), nil
}

// checksums returns the checksums of the applied migrations in order.
func (c *conn) checksums(ctx context.Context) (sums []string, err error) {
	exists, err := c.statement(ctx, &abi.SQLStatement{
		SQL: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", Args: []any{migrationTable},
	}, true)
	if err != nil || len(exists.Rows) == 0 {
		return nil, err
	}
	rows, err := c.statement(ctx, &abi.SQLStatement{SQL: "SELECT checksum FROM " +
		migrationTable + " ORDER BY step"}, true)
	if err != nil {
		return nil, err
	}
	for _, row := range rows.Rows {
		sum, _ := row[0].(string)
		sums = append(sums, sum)
	}
	return sums, nil
}

// apply runs one migration, which may be several statements, with the authorizer for plugins, and records it.
func (c *conn) apply(ctx context.Context, step int, migration string) error {
	if err := c.run(ctx, func() error { return c.script(migration) }); err != nil {
		return err
	}
	dangling, err := c.statement(ctx, &abi.SQLStatement{
		SQL: "SELECT \"table\", parent FROM pragma_foreign_key_check LIMIT 1",
	}, true)
	if err != nil {
		return err
	}
	if len(dangling.Rows) > 0 {
		return abi.Errorf(abi.CodeConflict, "FOREIGN KEY constraint failed: rows of %v refer to missing rows of %v",
			dangling.Rows[0]...)
	}
	record := fmt.Sprintf("INSERT INTO %s VALUES (%d, '%s', %d)", migrationTable, step,
		checksum(migration), time.Now().Unix())
	return c.execTrusted(ctx, createMigrations+";"+record)
}

// script runs several statements and drops their rows.
func (c *conn) script(sql string) error {
	for sql != "" {
		stmt, rest, err := c.db.Prepare(sql)
		if err != nil {
			return err
		}
		if sql = rest; stmt == nil {
			continue
		}
		for stmt.Step() {
		}
		err = stmt.Err()
		_ = stmt.Close() // repeats the error of the last step
		if err != nil {
			return err
		}
	}
	return nil
}

func checksum(migration string) string {
	sum := sha256.Sum256([]byte(migration))
	return hex.EncodeToString(sum[:])
}
