package store

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/lazyregexp"
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

// postgres is a PostgreSQL database.
type postgres struct {
	options *Options
	config  *pgx.ConnConfig // of connections outside of the pool, without a read timeout
	pool    *pgxpool.Pool
	db      *sql.DB // over pool
	locks   *locks

	mu      sync.Mutex
	library *pgxpool.Pool // guarded by mu; nil before Pool is called
}

var _ engine = (*postgres)(nil)

// newPostgres parses the URL and returns the configuration of the pool, without connecting.
func newPostgres(where, replica string, o *Options) (*postgres, *pgxpool.Config, error) {
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
	return &postgres{options: o, config: c.Copy()}, config, nil
}

// connectBound is the longest that connecting may take: the timeout of each host of the URL.
func (e *postgres) connectBound() time.Duration {
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

// openPostgres connects to the database and checks for an unsuitable pooler.
func openPostgres(ctx context.Context, where, replica string, o *Options) (*postgres, error) {
	e, config, err := newPostgres(where, replica, o)
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
		return nil, e.explain(err)
	}
	e.db = stdlib.OpenDBFromPool(e.pool)
	e.locks = newLocks(e)
	if err := e.checkPooler(ctx); err != nil {
		return nil, errors.Join(e.explain(err), e.close())
	}
	return e, nil
}

// password matches URLs that contain a password, including URLs that are invalid because of it.
var password = lazyregexp.New(`:[^@]*@|(?i)password`)

// badURL returns the error for an invalid URL. pgx cannot redact every password, so the URL is shown only if it
// contains none.
func badURL(where string, err error) error {
	_, rest, _ := strings.Cut(where, "://")
	if password().MatchString(rest) {
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
func (e *postgres) password(ctx context.Context, config *pgx.ConnConfig) (err error) {
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
func (e *postgres) settings(statements time.Duration) func(context.Context, *pgx.Conn) error {
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
func (e *postgres) connect(ctx context.Context) (*pgx.Conn, error) {
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
func (e *postgres) name() string {
	return fmt.Sprintf("postgres://%s:%d/%s", e.config.Host, e.config.Port, e.config.Database)
}

func (e *postgres) connections() int { return e.options.Connections }

func (e *postgres) begin(ctx context.Context, write bool) (*sql.Tx, error) {
	if write {
		return e.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	}
	return e.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// migrate runs f under a lock and sees all that is committed by then. It uses a separate connection, because its
// statements may be slow.
func (e *postgres) migrate(ctx context.Context, f func(*sql.Tx) error) error {
	db := stdlib.OpenDB(*e.config.Copy(), stdlib.OptionBeforeConnect(e.password),
		stdlib.OptionAfterConnect(e.settings(0)))
	defer db.Close()
	return inTurn(ctx, db, "migration", f)
}

func (e *postgres) inTurn(ctx context.Context, name string, f func(*sql.Tx) error) error {
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
	return finish(tx, func(tx *sql.Tx) error {
		const lock = "SELECT set_config('idle_in_transaction_session_timeout', $2, true), pg_advisory_xact_lock($1)"
		if _, err := tx.ExecContext(ctx, lock, lockKey("turn "+name), turnIdle); err != nil {
			return err
		}
		return f(tx)
	})
}

func (e *postgres) now(ctx context.Context, tx *sql.Tx) (now time.Time, err error) {
	err = tx.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now, err
}

func (e *postgres) announce(ctx context.Context, tx *sql.Tx, topic string) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, topic)
	return err
}

func (e *postgres) close() error {
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

// Redacted returns the URL of a database without its password. If the position of the password is unclear, only the
// scheme is left.
func Redacted(where string) string {
	scheme, rest, _ := strings.Cut(where, "://")
	if !password().MatchString(rest) {
		return where
	}
	u, err := url.Parse(where)
	if err != nil {
		u = new(url.URL)
	}
	if _, plain := u.User.Password(); !plain || password().MatchString(u.RawQuery) {
		return scheme + "://(not shown: it may contain a password)"
	}
	return u.Redacted()
}
