package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hako-run/hako/host/store"
)

// awaitPause is the pause between two attempts of Await.
const awaitPause = 500 * time.Millisecond

// Await waits for up to wait until it can connect to the database at a URL. A database that is being started may refuse
// connections, or its name may not resolve yet. Await logs each new reason once.
//
// It fails at once if waiting does not help: for an invalid URL, a wrong password, a missing database or an invalid
// certificate. Errors are those of Open and of ctx.
func Await(ctx context.Context, url string, options *Options, wait time.Duration) error {
	o := options.withDefaults()
	e, _, err := newEngine(url, store.NewReplica(), o)
	if err != nil {
		return err
	}
	said := ""
	for end := time.Now().Add(wait); ; {
		err := e.tryConnect(ctx)
		left := time.Until(end)
		switch {
		case err == nil && said != "":
			o.Logger.Info("the database responds")
			return nil
		case err == nil || !isTemporary(err):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case left <= 0:
			return fmt.Errorf("%w (waited for %v: postgres.wait)", err, wait)
		case err.Error() != said:
			said = err.Error()
			o.Logger.Warn("waiting for the database", "err", err, "most", wait)
		}
		select {
		case <-time.After(min(awaitPause, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryConnect opens a connection and closes it.
func (e *engine) tryConnect(ctx context.Context) error {
	bound := e.connectBound()
	inTime, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	conn, err := e.connect(inTime)
	if err != nil {
		return e.explainWithin(bound, err)
	}
	_ = conn.Close(inTime)
	return nil
}

// isTemporary reports whether another attempt may succeed. An error reported by the server is permanent, unless the
// server is starting or stopping, a pooler cannot reach it, or it has no free connections.
func isTemporary(err error) bool {
	var own *pgconn.PgError
	if errors.As(err, &own) {
		return strings.HasPrefix(own.Code, "57P") || strings.HasPrefix(own.Code, "08") ||
			strings.HasPrefix(own.Code, "53")
	}
	return errors.Is(err, store.ErrUnreachable) && !isCertificate(err) && !refusesTLS(err)
}
