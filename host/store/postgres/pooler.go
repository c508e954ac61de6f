package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// poolerRounds is the number of attempts to provoke a pooler into switching sessions.
const poolerRounds = 3

// checkPooler returns errPooled if a pooler shares sessions between its clients. Without a pooler it costs one round
// trip.
func (e *engine) checkPooler(ctx context.Context) error {
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
		err = errPooled
	}
	return poolerRefuses(err)
}

// poolerRefuses maps PgBouncer's errors in statement mode to errPooled.
func poolerRefuses(err error) error {
	if err != nil && strings.Contains(err.Error(), "statement pooling mode") {
		return fmt.Errorf("%w (%w)", errPooled, err)
	}
	return err
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// serverProcess returns the ID of the server process that answers.
func serverProcess(ctx context.Context, a querier) (pid uint32, err error) {
	err = a.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}

// sharesSessions reports whether several server processes answer one connection. A second connection provokes a switch:
// its transaction occupies the process that answered the first connection last. If the pooler rotates the processes,
// two queries in a row suffice.
func (e *engine) sharesSessions(ctx context.Context) (shared bool, err error) {
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
			shared, err = switchesProcess(ctx, ours, other, first)
		}
	}
	return shared, err
}

// switchesProcess reports whether another process than first answers ours, at once or while other is in a transaction.
func switchesProcess(ctx context.Context, ours, other *pgx.Conn, first uint32) (bool, error) {
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
