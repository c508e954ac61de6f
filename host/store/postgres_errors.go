package store

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
)

// trouble is a condition of PostgreSQL (its documentation, appendix A) that has one of the causes of errors.go.
type trouble struct {
	cause  error
	remedy string
}

// ownSessions is the remedy for ErrPooled.
const ownSessions = "give hako sessions of its own (PgBouncer: pool_mode=session for this database), or name the server itself (docs/store.md)"

// troubles are found by SQLSTATE, or by its first two characters, which are its class.
var troubles = map[string]trouble{
	"53100": {ErrFull, "free some space on the database's disk and try again; nothing was changed"},
	"53200": {ErrUnreachable, "the server is out of memory"},
	"53300": {ErrUnreachable, "all connections of the server are taken: raise its max_connections, lower postgres.connections, or run fewer replicas"},
	"25006": {ErrReadOnly, "the server only reads, as a standby does: name the primary, or add target_session_attrs=read-write to the URL"},
	"42501": {ErrReadOnly, "give the user the right to create and to write tables in this database (docs/store.md)"},
	"40001": {ErrLocked, "too many calls change the same thing at the same time: try again"},
	"40P01": {ErrLocked, "too many calls change the same thing at the same time: try again"},
	"55P03": {ErrLocked, "try again, and look which process holds it if that stays so"},
	"57014": {ErrUnreachable, "a statement took longer than postgres.statementTimeout: look at the server's load"},
	"57P":   {ErrUnreachable, "the server is starting or stopping: calls succeed again when it answers"},
	"08":    {ErrUnreachable, "calls succeed again when the server answers"},
	"28P01": {ErrUnreachable, "look at the user in store, and at postgres.password"},
	"28":    {ErrUnreachable, "the server lets this user not in: look at the user in store, postgres.password and the server's pg_hba.conf"},
	"3D":    {ErrUnreachable, "create the database, owned by this user, or name another one in store"},
	"3F":    {ErrReadOnly, "create the schema that the user's search_path names, or let the user use it (GRANT USAGE, CREATE ON SCHEMA)"},
	"42P05": {ErrPooled, ownSessions},
	"XX001": {ErrCorrupt, "restore the database from a backup"},
	"XX002": {ErrCorrupt, "restore the database from a backup, or rebuild the index (REINDEX)"},
}

func troubleOf(state string) (trouble, bool) {
	for n := len(state); n >= 2; n-- {
		if t, ok := troubles[state[:n]]; ok {
			return t, true
		}
	}
	return trouble{}, false
}

// explain names the cause where err is PostgreSQL's or the connection's. Another error, such as one of a transaction's own, stays as it is.
func (e *postgres) explain(err error) error {
	if err == nil || errors.Is(err, ErrUnreachable) {
		return err
	}
	var own *pgconn.PgError
	var commit *commitError
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, ErrPooled):
		return fmt.Errorf("store %s: %w: %s", e.name(), err, ownSessions)
	case errors.As(err, &connect): // also where it took longer than a connection may take, which is a deadline of its own
		return fmt.Errorf("store %s: %w", e.name(), explainConnect(connect))
	case errors.As(err, &commit) && dropped(err):
		return fmt.Errorf("store %s: %w (%w): the connection was lost at the end of the transaction, which may have been kept or not", e.name(), ErrUnreachable, err)
	case errors.As(err, &own):
		t, ok := troubleOf(own.Code)
		if !ok {
			return fmt.Errorf("store %s: %w", e.name(), err)
		}
		return fmt.Errorf("store %s: %w (%w): %s", e.name(), t.cause, err, t.remedy)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case !broken(err):
		return err
	}
	return fmt.Errorf("store %s: %w (%w): calls succeed again when the server answers", e.name(), ErrUnreachable, err)
}

// explainWithin is explain for an answer that did not come in time.
func (e *postgres) explainWithin(in time.Duration, err error) error {
	if err = e.explain(err); errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) {
		return e.noAnswer(in)
	}
	return err
}

// again reports a conflict of transactions, or a statement that was prepared before a migration.
func (e *postgres) again(err error) bool {
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

// lost reports a connection that ended before the transaction did.
func (e *postgres) lost(err error) bool {
	var commit *commitError
	var connect *pgconn.ConnectError
	if errors.As(err, &commit) || errors.As(err, &connect) {
		return false
	}
	var network net.Error
	return dropped(err) && !(errors.As(err, &network) && network.Timeout())
}

// dropped reports a connection that is there no more, by the server's own words or without any. It is none of a context's end.
func dropped(err error) bool {
	var own *pgconn.PgError
	if errors.As(err, &own) {
		return own.SeverityUnlocalized == "FATAL" || strings.HasPrefix(own.Code, "57P") || strings.HasPrefix(own.Code, "08")
	}
	return broken(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// noAnswer is the error for a server that does not answer at all.
func (e *postgres) noAnswer(in time.Duration) error {
	return fmt.Errorf("store %s: %w: no answer within %v: calls succeed again when the server answers", e.name(), ErrUnreachable, in)
}

// broken reports an error of the connection rather than of what it carried.
func broken(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
