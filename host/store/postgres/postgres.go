// Package postgres is the PostgreSQL database of a store, which several replicas share. Locks are advisory locks, change
// notifications are LISTEN and NOTIFY.
package postgres

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/visible"
)

const (
	// connectTime is the timeout for connecting to one host if the URL has no connect_timeout.
	connectTime = 5 * time.Second
	// pingTime is the timeout for checking an idle connection.
	pingTime = time.Second
	// answerTime is added to Options.StatementTimeout for the timeout of a server that does not answer at all.
	answerTime = 3 * time.Second
)

// Options configures Open and Await. A nil *Options means all defaults.
type Options struct {
	// Dir is a local directory for data that may be lost. Empty means the directory "store" in the user's cache
	// directory.
	Dir string
	// Password returns the password for each new connection. Nil means the password in the URL, PGPASSWORD or the
	// password file.
	Password func(context.Context) (string, error)
	// Connections is the maximum number of connections for transactions, at least 2. Zero means 10. A store uses two
	// more, for locks and for notifications.
	Connections int
	// StatementTimeout is the timeout of each statement. A connection to a server that does not answer at all fails 3
	// seconds later. Zero means 10 s.
	StatementTimeout time.Duration
	// Logger receives warnings about lost connections. Nil discards them.
	Logger *slog.Logger
	// ReadOnly opens the database without changing it. Migrate fails with store.ErrUnprepared instead of creating
	// tables.
	ReadOnly bool
}

func (o *Options) withDefaults() *Options {
	filled := Options{}
	if o != nil {
		filled = *o
	}
	if filled.Dir == "" {
		filled.Dir = cacheDir()
	}
	if filled.Connections == 0 {
		filled.Connections = 10
	}
	filled.Connections = max(filled.Connections, 2)
	if filled.StatementTimeout == 0 {
		filled.StatementTimeout = 10 * time.Second
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return &filled
}

// Open opens the store in the PostgreSQL database at a URL of libpq's form (PostgreSQL's documentation, section
// 34.1.1.2). Missing parts come from libpq's environment variables:
// postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE. The caller closes the Store.
//
// The error matches store.ErrUnreachable, ErrReadOnly, ErrCorrupt or ErrFull if that is the cause, and never shows the
// password.
func Open(ctx context.Context, url string, options *Options) (*store.Store, error) {
	o := options.withDefaults()
	replica := store.NewReplica()
	e, err := connect(ctx, url, replica, o)
	if err != nil {
		return nil, err
	}
	return store.New(ctx, e, &store.Options{Dir: o.Dir, Replica: replica, ReadOnly: o.ReadOnly})
}

// engine is a PostgreSQL database.
type engine struct {
	options *Options
	config  *pgx.ConnConfig // of connections outside of the pool, without a read timeout
	pool    *pgxpool.Pool
	db      *sql.DB // over pool
	locks   *locks

	mu      sync.Mutex
	library *pgxpool.Pool // guarded by mu; nil before Pool is called
}

var _ store.Engine = (*engine)(nil)

// newEngine parses the URL and returns the configuration of the pool, without connecting.
func newEngine(where, replica string, o *Options) (*engine, *pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(where)
	if err != nil {
		return nil, nil, badURL(where, err)
	}
	c := config.ConnConfig
	if err := checkEncryption(c); err != nil {
		return nil, nil, err
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTime
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "hako " + replica
	}
	return &engine{options: o, config: c.Copy()}, config, nil
}

// connectBound is the longest that connecting may take: the timeout of each host of the URL.
func (e *engine) connectBound() time.Duration {
	return time.Duration(1+len(e.config.Fallbacks)) * e.config.ConnectTimeout
}

// checkEncryption refuses URLs with which the server, or an attacker on the network, decides about encryption:
// sslmode=allow, and sslmode=prefer, which is the default. Servers on this machine are exempt.
func checkEncryption(c *pgx.ConnConfig) error {
	plain, encrypted := map[string]bool{}, map[string]bool{}
	note := func(host string, encryption *tls.Config) {
		if encryption == nil {
			plain[host] = true
		} else {
			encrypted[host] = true
		}
	}
	note(c.Host, c.TLSConfig)
	for _, f := range c.Fallbacks {
		note(f.Host, f.TLSConfig)
	}
	for host := range plain {
		if encrypted[host] && !isLocal(host) {
			return fmt.Errorf("store: the connection to %s would be unencrypted if the server does not support "+
				"encryption: add sslmode=verify-full and "+
				"sslrootcert=FILE to the URL, or sslmode=disable on a trusted network", visible.Text(host))
		}
	}
	return nil
}

// isLocal reports whether a host is "localhost", a literal loopback address or the path of a socket.
func isLocal(host string) bool {
	return address.IsLoopback(host) || filepath.IsAbs(host) || strings.HasPrefix(host, "@")
}

// connect connects to the database and checks for an unsuitable pooler.
func connect(ctx context.Context, where, replica string, o *Options) (*engine, error) {
	e, config, err := newEngine(where, replica, o)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(o.Connections)
	config.PingTimeout = pingTime
	config.BeforeConnect = e.password
	if o.ReadOnly {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}
	config.AfterConnect = e.settings(o.StatementTimeout)
	config.ConnConfig.DialFunc = withReadTimeout(config.ConnConfig.DialFunc, o.StatementTimeout+answerTime)
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, e.Explain(err)
	}
	e.db = stdlib.OpenDBFromPool(e.pool)
	e.locks = newLocks(e)
	if err := e.checkPooler(ctx); err != nil {
		return nil, errors.Join(e.Explain(err), e.Close())
	}
	return e, nil
}

// badURL returns the error for an invalid URL. pgx cannot redact every password, so the URL is shown only if it
// contains none.
func badURL(where string, err error) error {
	if store.Redacted(where) != where {
		return fmt.Errorf("store: the URL is invalid (it is not shown, because it contains a password): write it as " +
			"postgres://USER@HOST:PORT/DATABASE, and give the password with postgres.password; in a URL all but " +
			"letters and digits in it is percent-encoded")
	}
	return fmt.Errorf("store: %w", err)
}

// cacheDir returns the default of Options.Dir.
func cacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "hako", "store")
}

// password sets the password of a new connection.
func (e *engine) password(ctx context.Context, config *pgx.ConnConfig) (err error) {
	if e.options.Password == nil {
		return nil
	}
	if config.Password, err = e.options.Password(ctx); err != nil {
		return fmt.Errorf("the password: %w", err)
	}
	return nil
}

// settings returns the function that configures the session of a new connection. The settings are not startup
// parameters, which poolers refuse.
func (e *engine) settings(statements time.Duration) func(context.Context, *pgx.Conn) error {
	// With these keepalives the server detects within 25 seconds that this machine is gone, and releases its locks.
	text := fmt.Sprintf("SET statement_timeout = %d; SET idle_in_transaction_session_timeout = 60000; "+
		"SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3",
		statements.Milliseconds())
	return func(ctx context.Context, conn *pgx.Conn) error {
		// in one round trip, without a prepared statement
		_, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
		return err
	}
}

// connect opens a connection outside of the pool.
func (e *engine) connect(ctx context.Context) (*pgx.Conn, error) {
	config := e.config.Copy()
	if err := e.password(ctx, config); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := e.settings(0)(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// name returns the URL without user, password and parameters.
func (e *engine) Name() string {
	return fmt.Sprintf("postgres://%s:%d/%s", e.config.Host, e.config.Port, e.config.Database)
}

func (e *engine) Connections() int { return e.options.Connections }

func (e *engine) Shared() bool { return true }

func (e *engine) Begin(ctx context.Context, write bool) (*sql.Tx, error) {
	if write {
		return e.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	}
	return e.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// Migrate runs f under a lock and sees all that is committed by then. It uses a separate connection, because its
// statements may be slow.
func (e *engine) Migrate(ctx context.Context, f func(*sql.Tx) error) error {
	db := stdlib.OpenDB(*e.config.Copy(), stdlib.OptionBeforeConnect(e.password),
		stdlib.OptionAfterConnect(e.settings(0)))
	defer db.Close()
	return inTurn(ctx, db, "migration", f)
}

func (e *engine) InTurn(ctx context.Context, name string, f func(*sql.Tx) error) error {
	return inTurn(ctx, e.db, name, f)
}

// turnIdle is the idle timeout, in milliseconds, of a transaction of inTurn, so that a stalled replica does not block
// the others for longer.
const turnIdle = "5000"

// inTurn runs f in a transaction under a lock. Each statement sees all that was committed before it.
func inTurn(ctx context.Context, db *sql.DB, name string, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	return store.Commit(tx, func(tx *sql.Tx) error {
		const lock = "SELECT set_config('idle_in_transaction_session_timeout', $2, true), pg_advisory_xact_lock($1)"
		if _, err := tx.ExecContext(ctx, lock, lockKey("turn "+name), turnIdle); err != nil {
			return err
		}
		return f(tx)
	})
}

func (e *engine) Now(ctx context.Context, tx *sql.Tx) (now time.Time, err error) {
	err = tx.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now, err
}

func (e *engine) Announce(ctx context.Context, tx *sql.Tx, topic string) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, topic)
	return err
}

func (e *engine) Close() error {
	e.locks.close()
	err := e.db.Close()
	e.pool.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.library != nil {
		e.library.Close()
	}
	return err
}
