package database

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/pdk/abi"
)

// grace is how long a statement may go on after its deadline before it is left behind: SQLite looks at the deadline every thousand
// steps, and one step may handle megabytes.
const grace = 10 * time.Millisecond

// conn is one connection. It belongs to one goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	files *files
	// statements are compiled ones, the most recently used last.
	statements []*sqlite3.Stmt
	// trusted lets the host's own statements through the authorizer.
	trusted bool
	// write says that its user is the one who may write.
	write bool
	// done gives the right to write back; nil: it never had a user.
	done func()
	// broken says that it must not be used again.
	broken bool
	// running is closed when the statement ends that was left behind; nil: none was.
	running chan struct{}
	// work is how long SQLite has worked since takeWork was called.
	work time.Duration
}

// takeWork returns how long SQLite has worked since it was called last. What was left behind does not count.
func (c *conn) takeWork() time.Duration {
	if c.running != nil {
		return 0
	}
	work := c.work
	c.work = 0
	return work
}

// open opens a connection. It returns one, to be released, also when it fails.
func open(ctx context.Context, o *Options) (*conn, error) {
	c := &conn{files: newFiles(o)}
	err := c.run(ctx, func() (err error) {
		if c.db, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, maxMemory), c.source(o.Path)); err != nil {
			return err
		}
		c.db.SetInterrupt(ctx)
		return c.configure(o)
	})
	if err != nil && c.running == nil {
		c.broken = true
	}
	return c, err
}

// source is SQLite's name for the file in the connection's file system.
func (c *conn) source(path string) string {
	query := url.Values{"vfs": {c.files.name}, "modeof": {path}}.Encode()
	query = strings.ReplaceAll(query, "+", "%20") // SQLite takes a plus sign for itself
	if c.files.open != nil {
		return "file:database?" + query // its file system has no other
	}
	return fileName(path) + "?" + query
}

// fileName is SQLite's name for a file, without parameters.
func fileName(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// limits are SQLite's own (sqlite.org/c3ref/limit.html), where its defaults are wider.
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

func (c *conn) configure(o *Options) error {
	if err := c.db.BusyHandler(waitBusy()); err != nil {
		return err
	}
	pragmas := []string{
		fmt.Sprintf("page_size = %d", pageSize),
		"journal_mode = wal",
		"synchronous = full", // what a call has answered for outlives a power failure
		"foreign_keys = on",
		"cell_size_check = on",
		"temp_store = file",
		"cache_size = -1000",
		"journal_size_limit = 1048576",
		fmt.Sprintf("max_page_count = %d", o.Quota/pageSize),
	}
	if o.Place != nil { // which commits all or nothing
		pragmas = append(pragmas, "journal_mode = memory", "cache_spill = off")
	}
	for _, pragma := range pragmas {
		if err := c.db.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	for limit, value := range limits {
		c.db.Limit(limit, value)
	}
	for option, on := range map[sqlite3.DBConfig]bool{sqlite3.DBCONFIG_DEFENSIVE: true, sqlite3.DBCONFIG_TRUSTED_SCHEMA: false} {
		if _, err := c.db.Config(option, on); err != nil {
			return err
		}
	}
	return c.db.SetAuthorizer(func(action sqlite3.AuthorizerActionCode, first, second, schema, inner string) sqlite3.AuthorizerReturnCode {
		if c.trusted {
			return sqlite3.AUTH_OK
		}
		return authorize(action, first, second, schema, inner)
	})
}

// waitBusy returns what SQLite asks whether to try again for a lock that another process holds.
func waitBusy() func(context.Context, int) bool {
	var start time.Time
	return func(ctx context.Context, count int) bool {
		if count == 0 {
			start = time.Now()
		}
		if time.Since(start) > busyWait {
			return false
		}
		pause := time.Millisecond + rand.N(time.Millisecond<<min(count, 4))
		select {
		case <-time.After(pause):
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// renew forgets what an earlier user of the connection could tell by.
func (c *conn) renew() { c.db.SetLastInsertRowID(0) }

// run runs f, which uses the connection, until ctx ends. One that goes on is left behind: then the connection must be released and
// not used, and nothing that f writes be read. A panic in f, which is how SQLite's wrapper reports a lack of memory, is an error.
func (c *conn) run(ctx context.Context, f func() error) error {
	if c.db != nil {
		c.db.SetInterrupt(ctx)
	}
	c.files.ctx, c.files.full = ctx, nil
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

// panicError is what SQLite or its wrapper stopped with.
type panicError struct{ cause any }

func (e *panicError) Error() string { return fmt.Sprint(e.cause) }

// outOfMemory reports whether the connection's own memory was not enough.
func (e *panicError) outOfMemory() bool {
	err, ok := e.cause.(error)
	return ok && strings.Contains(err.Error(), "out of memory")
}

// host runs SQL of the host's own. It is not kept compiled: a plugin that sent the same text would have it authorized.
func (c *conn) host(ctx context.Context, sql string) error {
	return c.run(ctx, func() error {
		c.trusted = true
		defer func() { c.trusted = false }()
		return c.db.Exec(sql)
	})
}

// statement runs one of the plugin's.
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

// checkpoint puts into the database what is in the log, as far as nobody reads what was before.
func (c *conn) checkpoint(ctx context.Context) error {
	return c.run(ctx, func() error {
		_, _, err := c.db.WALCheckpoint("", sqlite3.CHECKPOINT_PASSIVE)
		return err
	})
}

// over reports that no transaction is open, or none that could go on.
func (c *conn) over() bool { return c.running != nil || c.broken || c.db.GetAutocommit() }

// rollback ends a transaction that was left open.
func (c *conn) rollback() error {
	if c.over() {
		return nil
	}
	return c.host(context.Background(), "ROLLBACK")
}

const (
	// maxStatements is how many compiled statements a connection keeps.
	maxStatements = 24
	// maxKept is the longest that is kept, in bytes.
	maxKept = 4 << 10
)

// prepare compiles a statement, or finds it compiled. It is to be finished.
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

// finish makes a statement ready for its next use, or gives one up: a long one, or the one that has not been used for longest.
func (c *conn) finish(stmt *sqlite3.Stmt) {
	// Reset and Close repeat the error of the last step.
	_ = stmt.Reset()
	_ = stmt.ClearBindings()
	last := len(c.statements) - 1
	switch {
	case len(stmt.SQL()) > maxKept:
		_ = stmt.Close()
		c.statements = c.statements[:last]
	case last >= maxStatements:
		_ = c.statements[0].Close()
		c.statements = slices.Delete(c.statements, 0, 1)
	}
}

// compile compiles the one statement that sql must be.
func (c *conn) compile(sql string) (*sqlite3.Stmt, error) {
	if len(sql) > maxSQL {
		return nil, failf(abi.CodeLimit, "a statement has at most %d bytes, and this one %d: send values as parameters", maxSQL, len(sql))
	}
	if strings.ContainsRune(sql, 0) || !utf8.ValidString(sql) {
		return nil, failf(abi.CodeInvalid, "the statement is not UTF-8, or contains a NUL character")
	}
	stmt, tail, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return nil, failf(abi.CodeInvalid, "the statement is empty")
	}
	if tail = strings.TrimLeft(tail, "; \t\r\n\f"); tail != "" {
		next, rest, err := c.db.Prepare(tail)
		if err != nil || next != nil || rest != "" {
			_ = next.Close()
			_ = stmt.Close()
			return nil, failf(abi.CodeInvalid, "there are several statements: send them one by one, in a transaction if they belong together")
		}
	}
	return stmt, nil
}

// close closes the connection and what is left open in it. It is not to be used while a statement runs.
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
