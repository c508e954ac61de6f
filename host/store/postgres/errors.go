package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hako-run/hako/host/store"
)

// condition is an error condition of PostgreSQL (its documentation, appendix A) with its cause in errors.go and its
// remedy.
type condition struct {
	cause  error
	remedy string
}

// errPooled means that a connection pooler shares sessions of the server between clients. Session locks and change
// notifications cannot work then.
var errPooled = errors.New("a pooler shares sessions between clients")

// ownSessions is the remedy for errPooled.
const ownSessions = "let the pooler give hako its own sessions (PgBouncer: pool_mode=session for this database), or " +
	"connect to the server itself (docs/store.md)"

// conditions maps a SQLSTATE, or its class in the first two characters, to a condition.
var conditions = map[string]condition{
	"53100": {store.ErrFull, "free some space on the database's disk and try again; nothing was changed"},
	"53200": {store.ErrUnreachable, "the server is out of memory"},
	"53300": {store.ErrUnreachable, "all connections of the server are in use: raise its max_connections, lower " +
		"postgres.connections, or run fewer replicas"},
	"25006": {store.ErrReadOnly, "the server is read-only, such as a standby: name the primary, or add " +
		"target_session_attrs=read-write to the URL"},
	"42501": {store.ErrReadOnly, "let the user create and write tables in this database (docs/store.md)"},
	"40001": {store.ErrLocked, "too many calls change the same thing at the same time: try again"},
	"40P01": {store.ErrLocked, "too many calls change the same thing at the same time: try again"},
	"55P03": {store.ErrLocked, "try again; if that does not help, check which process holds it"},
	"57014": {store.ErrUnreachable, "a statement took longer than postgres.statementTimeout: check the server's load"},
	"57P":   {store.ErrUnreachable, "the server is starting or stopping: calls succeed again when it answers"},
	"08":    {store.ErrUnreachable, "calls succeed again when the server answers"},
	"28P01": {store.ErrUnreachable, "check the user in store and postgres.password"},
	"28": {store.ErrUnreachable, "the server refuses this user: check the user in store, postgres.password and the " +
		"server's pg_hba.conf"},
	"3D": {store.ErrUnreachable, "create the database, owned by this user, or name another one in store"},
	"3F": {store.ErrReadOnly, "create the schema that the user's search_path names, or let the user use it (GRANT " +
		"USAGE, CREATE ON SCHEMA)"},
	"42P05": {errPooled, ownSessions},
	"XX001": {store.ErrCorrupt, "restore the database from a backup"},
	"XX002": {store.ErrCorrupt, "restore the database from a backup, or rebuild the index (REINDEX)"},
}

func conditionOf(state string) (condition, bool) {
	for n := len(state); n >= 2; n-- {
		if t, ok := conditions[state[:n]]; ok {
			return t, true
		}
	}
	return condition{}, false
}

// Explain adds cause and remedy to an error of PostgreSQL or of the connection. Other errors, such as those of a
// transaction's function, stay as they are.
func (e *engine) Explain(err error) error {
	if err == nil || errors.Is(err, store.ErrUnreachable) {
		return err
	}
	var own *pgconn.PgError
	var commit *store.CommitError
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, errPooled):
		return fmt.Errorf("store %s: %w: %s", e.Name(), err, ownSessions)
	case errors.As(err, &connect): // also after the timeout for connecting, which is a deadline of its own
		return fmt.Errorf("store %s: %w", e.Name(), explainConnect(connect))
	case errors.As(err, &commit) && dropped(err):
		return fmt.Errorf("store %s: %w (%w): the connection was lost during the commit, "+
			"so the transaction may or may not be committed", e.Name(), store.ErrUnreachable, err)
	case errors.As(err, &own):
		t, ok := conditionOf(own.Code)
		if !ok {
			return fmt.Errorf("store %s: %w", e.Name(), err)
		}
		return fmt.Errorf("store %s: %w (%w): %s", e.Name(), t.cause, err, t.remedy)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case !broken(err):
		return err
	}
	return fmt.Errorf("store %s: %w (%w): calls succeed again when the server answers", e.Name(), store.ErrUnreachable, err)
}

// explainWithin is explain for a missing answer after the given time.
func (e *engine) explainWithin(in time.Duration, err error) error {
	if err = e.Explain(err); errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnreachable) {
		return e.noAnswer(in)
	}
	return err
}

// isConflict reports whether err is a conflict of transactions, or concerns a statement that was prepared before a
// migration.
func (e *engine) IsConflict(err error) bool {
	var own *pgconn.PgError
	if !errors.As(err, &own) {
		return false
	}
	switch own.Code {
	case "40001", "40P01", "26000":
		return true
	}
	return own.Code == "0A000" && strings.Contains(own.Message, "cached plan")
}

// lostBeforeCommit reports whether the connection was lost before the commit.
func (e *engine) LostBeforeCommit(err error) bool {
	var commit *store.CommitError
	var connect *pgconn.ConnectError
	if errors.As(err, &commit) || errors.As(err, &connect) {
		return false
	}
	var network net.Error
	return dropped(err) && !(errors.As(err, &network) && network.Timeout())
}

// dropped reports whether the connection was closed, with or without a message of the server. The end of a context does
// not count.
func dropped(err error) bool {
	var own *pgconn.PgError
	if errors.As(err, &own) {
		return own.SeverityUnlocalized == "FATAL" || strings.HasPrefix(own.Code, "57P") ||
			strings.HasPrefix(own.Code, "08")
	}
	return broken(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// noAnswer returns the error for a server that does not answer at all.
func (e *engine) noAnswer(in time.Duration) error {
	return fmt.Errorf("store %s: %w: no answer within %v: calls succeed again when the server answers",
		e.Name(), store.ErrUnreachable, in)
}

// broken reports whether err is an error of the connection and not of a statement.
func broken(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
