package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// poolerRounds is how often it is tried to catch a pooler in the act of giving a session to another client.
const poolerRounds = 3

// checkPooler fails with ErrPooled where a pooler gives the sessions of the server to its clients in turn. That costs a round trip where there
// is no pooler.
func (e *postgres) checkPooler(ctx context.Context) error {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return poolerRefuses(err)
	}
	defer conn.Release()
	pid, err := serverProcess(ctx, conn)
	if err != nil || pid == conn.Conn().PgConn().PID() {
		return poolerRefuses(err)
	}
	shared, err := e.sharesSessions(ctx)
	if err == nil && shared {
		err = ErrPooled
	}
	return poolerRefuses(err)
}

// poolerRefuses finds ErrPooled in what PgBouncer says in its statement mode.
func poolerRefuses(err error) error {
	if err != nil && strings.Contains(err.Error(), "statement pooling mode") {
		return fmt.Errorf("%w (%w)", ErrPooled, err)
	}
	return err
}

// asker is a connection, or a transaction on one.
type asker interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// serverProcess is the process of the server that answers.
func serverProcess(ctx context.Context, a asker) (pid uint32, err error) {
	return pid, a.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
}

// sharesSessions reports whether one connection is answered by several processes of the server, in turn with other clients. A second
// connection provokes that: its transaction holds the process that has answered the first one last, or, where the pooler takes
// them in turn, two questions in a row are enough.
func (e *postgres) sharesSessions(ctx context.Context) (shared bool, err error) {
	ours, err := e.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = ours.Close(context.WithoutCancel(ctx)) }()
	other, err := e.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	first, err := serverProcess(ctx, ours)
	for range poolerRounds {
		if err == nil && !shared {
			shared, err = movesAside(ctx, ours, other, first)
		}
	}
	return shared, err
}

// movesAside reports whether ours is answered by another process than first, at once or while other is in a transaction.
func movesAside(ctx context.Context, ours, other *pgx.Conn, first uint32) (bool, error) {
	again, err := serverProcess(ctx, ours)
	if err != nil || again != first {
		return again != first, err
	}
	tx, err := other.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := serverProcess(ctx, tx); err != nil {
		return false, err
	}
	again, err = serverProcess(ctx, ours)
	return again != first, err
}
