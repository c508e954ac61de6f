package database

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/pdk/abi"
)

// grace is the time after the deadline after which a running statement is abandoned: SQLite checks the deadline every
// thousand steps, and one step may process megabytes.
const grace = 10 * time.Millisecond

// conn is one connection. It belongs to one goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	files *files
	// statements are cached compiled statements, the most recently used last.
	statements []*sqlite3.Stmt
	// trusted disables the authorizer for statements of the host.
	trusted bool
	// write reports whether the current user holds the right to write.
	write bool
	// done releases the right to write; nil before the first use.
	done func()
	// broken reports that the connection must not be reused.
	broken bool
	// running is closed when an abandoned statement ends; nil if there is none.
	running chan struct{}
	// work is SQLite's computing time since the last takeWork.
	work time.Duration
}

// takeWork returns and resets work. Abandoned statements do not count.
func (c *conn) takeWork() time.Duration {
	if c.running != nil {
		return 0
	}
	work := c.work
	c.work = 0
	return work
}

// open opens a connection. Even if it fails, it returns a connection to release.
func open(ctx context.Context, o *Options) (*conn, error) {
	c := &conn{files: newFiles(o)}
	err := c.run(ctx, func() (err error) {
		if c.db, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, maxMemory), c.source(o.Path)); err != nil {
			return err
		}
		c.db.SetInterrupt(ctx)
		return c.configure(ctx, o)
	})
	if err != nil && c.running == nil {
		c.broken = true
	}
	return c, err
}

// source returns the URI of the file in the connection's file system.
func (c *conn) source(path string) string {
	query := url.Values{"vfs": {c.files.name}, "modeof": {path}}.Encode()
	query = strings.ReplaceAll(query, "+", "%20") // SQLite does not decode a plus sign
	if c.files.open != nil {
		return "file:database?" + query // the only file in its file system
	}
	return fileName(path) + "?" + query
}

// fileName returns the URI of a file without parameters.
func fileName(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// limits are run-time limits (sqlite.org/c3ref/limit.html) that are stricter than SQLite's defaults.
var limits = map[sqlite3.LimitCategory]int{
	sqlite3.LIMIT_LENGTH:              MaxBytes,
	sqlite3.LIMIT_SQL_LENGTH:          maxSQL,
	sqlite3.LIMIT_COLUMN:              500,
	sqlite3.LIMIT_EXPR_DEPTH:          200,
	sqlite3.LIMIT_COMPOUND_SELECT:     100,
	sqlite3.LIMIT_VDBE_OP:             250_000,
	sqlite3.LIMIT_FUNCTION_ARG:        100,
	sqlite3.LIMIT_ATTACHED:            0,
	sqlite3.LIMIT_LIKE_PATTERN_LENGTH: 1000,
	sqlite3.LIMIT_TRIGGER_DEPTH:       50,
	sqlite3.LIMIT_WORKER_THREADS:      0,
	sqlite3.LIMIT_PARSER_DEPTH:        200,
}

const pageSize = 4096

func (c *conn) configure(ctx context.Context, o *Options) error {
	if err := c.db.BusyHandler(waitBusy()); err != nil {
		return err
	}
	pragmas := []string{
		fmt.Sprintf("page_size = %d", pageSize),
		"journal_mode = wal",
		"synchronous = full", // committed transactions survive a power failure
		"foreign_keys = on",
		"cell_size_check = on",
		"temp_store = file",
		"cache_size = -1000",
		"journal_size_limit = 1048576",
		fmt.Sprintf("max_page_count = %d", o.Quota/pageSize),
	}
	if o.PageStore != nil { // its commits are atomic
		pragmas = append(pragmas, "journal_mode = memory", "cache_spill = off")
	}
	for _, pragma := range pragmas {
		// SQLite does not call the busy handler while another connection changes the journal mode too.
		err, wait := c.db.Exec("PRAGMA "+pragma), waitBusy()
		for count := 0; errors.Is(err, sqlite3.BUSY) && wait(ctx, count); count++ {
			err = c.db.Exec("PRAGMA " + pragma)
		}
		if err != nil {
			return err
		}
	}
	for limit, value := range limits {
		c.db.Limit(limit, value)
	}
	for option, on := range map[sqlite3.DBConfig]bool{sqlite3.DBCONFIG_DEFENSIVE: true,
		sqlite3.DBCONFIG_TRUSTED_SCHEMA: false} {
		if _, err := c.db.Config(option, on); err != nil {
			return err
		}
	}
	return c.db.SetAuthorizer(func(action sqlite3.AuthorizerActionCode, first, second, schema,
		inner string) sqlite3.AuthorizerReturnCode {
		if c.trusted {
			return sqlite3.AUTH_OK
		}
		return authorize(action, first, second, schema, inner)
	})
}

// waitBusy returns the busy handler, which decides whether to retry for a lock of another process.
func waitBusy() func(context.Context, int) bool {
	var start time.Time
	return func(ctx context.Context, count int) bool {
		if count == 0 {
			start = time.Now()
		}
		if time.Since(start) > busyWait {
			return false
		}
		return retry.Wait(ctx, time.Millisecond+rand.N(time.Millisecond<<min(count, 4))) == nil
	}
}

// resetState clears the state that an earlier user of the connection left.
func (c *conn) resetState() { c.db.SetLastInsertRowID(0) }

// run runs f, which uses the connection, until ctx ends. If f continues after that, it is abandoned: the connection
// must be released without further use, and results of f must not be read. A panic in f is returned as an error,
// because SQLite's wrapper panics if memory is exhausted.
func (c *conn) run(ctx context.Context, f func() error) error {
	if c.db != nil {
		c.db.SetInterrupt(ctx)
	}
	c.files.ctx, c.files.failure = ctx, nil
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				c.broken = true
				err = &panicError{cause}
			}
		}()
		begin := time.Now()
		err = f()
		c.work += time.Since(begin)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return err
	case <-time.After(grace):
		c.running = done
		return ctx.Err()
	}
}

// panicError is a panic of SQLite or its wrapper.
type panicError struct{ cause any }

func (e *panicError) Error() string { return fmt.Sprint(e.cause) }

// outOfMemory reports whether the connection's memory was exhausted.
func (e *panicError) outOfMemory() bool {
	err, ok := e.cause.(error)
	return ok && strings.Contains(err.Error(), "out of memory")
}

// execTrusted runs SQL of the host. It does not cache the compiled statement, because the same text from a plugin would
// skip the authorizer.
func (c *conn) execTrusted(ctx context.Context, sql string) error {
	return c.run(ctx, func() error {
		c.trusted = true
		defer func() { c.trusted = false }()
		return c.db.Exec(sql)
	})
}

// statement runs a statement of the plugin.
func (c *conn) statement(ctx context.Context, s *abi.SQLStatement, rows bool) (*abi.SQLResult, error) {
	var result *abi.SQLResult
	err := c.run(ctx, func() (err error) {
		result, err = c.execute(s, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// checkpoint copies the write-ahead log into the database, as far as readers allow it.
func (c *conn) checkpoint(ctx context.Context) error {
	return c.run(ctx, func() error {
		_, _, err := c.db.WALCheckpoint("", sqlite3.CHECKPOINT_PASSIVE)
		return err
	})
}

// noTransaction reports that no transaction is open, or none that can continue.
func (c *conn) noTransaction() bool { return c.running != nil || c.broken || c.db.GetAutocommit() }

// rollback rolls back an open transaction.
func (c *conn) rollback() error {
	if c.noTransaction() {
		return nil
	}
	return c.execTrusted(context.Background(), "ROLLBACK")
}

const (
	// maxStatements limits the compiled statements that a connection caches.
	maxStatements = 24
	// maxCachedSQL is the length of the longest cached statement, in bytes.
	maxCachedSQL = 4 << 10
)

// prepare returns a compiled statement, perhaps from the cache. The caller must finish it.
func (c *conn) prepare(sql string) (*sqlite3.Stmt, error) {
	i := slices.IndexFunc(c.statements, func(s *sqlite3.Stmt) bool { return s.SQL() == sql })
	if i >= 0 {
		stmt := c.statements[i]
		c.statements = append(slices.Delete(c.statements, i, i+1), stmt)
		return stmt, nil
	}
	stmt, err := c.compile(sql)
	if err != nil {
		return nil, err
	}
	c.statements = append(c.statements, stmt)
	return stmt, nil
}

// finish resets a statement and caches it, in place of the least recently used one, or closes it if it is too long.
func (c *conn) finish(stmt *sqlite3.Stmt) {
	// Reset and Close repeat the error of the last step.
	_ = stmt.Reset()
	_ = stmt.ClearBindings()
	last := len(c.statements) - 1
	switch {
	case len(stmt.SQL()) > maxCachedSQL:
		_ = stmt.Close()
		c.statements = c.statements[:last]
	case last >= maxStatements:
		_ = c.statements[0].Close()
		c.statements = slices.Delete(c.statements, 0, 1)
	}
}

// compile compiles sql, which must be exactly one statement.
func (c *conn) compile(sql string) (*sqlite3.Stmt, error) {
	if len(sql) > maxSQL {
		return nil, abi.Errorf(abi.CodeLimit,
			"a statement may have at most %d bytes, and this one has %d: send values "+
				"as parameters", maxSQL, len(sql))
	}
	if strings.ContainsRune(sql, 0) || !utf8.ValidString(sql) {
		return nil, abi.Errorf(abi.CodeInvalid, "the statement is not UTF-8, or contains a NUL character")
	}
	stmt, tail, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return nil, abi.Errorf(abi.CodeInvalid, "the statement is empty")
	}
	if tail = strings.TrimLeft(tail, "; \t\r\n\f"); tail != "" {
		next, rest, err := c.db.Prepare(tail)
		if err != nil || next != nil || rest != "" {
			_ = next.Close()
			_ = stmt.Close()
			return nil, abi.Errorf(abi.CodeInvalid,
				"there are several statements: send them one by one, in a transaction if they belong together")
		}
	}
	return stmt, nil
}

// close closes the connection and its statements. It must not be called while a statement runs.
func (c *conn) close() (err error) {
	defer c.files.close()
	if c.db == nil {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = &panicError{cause}
		}
	}()
	c.db.SetInterrupt(context.Background())
	for _, stmt := range slices.Collect(c.db.Stmts()) {
		_ = stmt.Close() // repeats the error of the last step
	}
	return c.db.Close()
}
