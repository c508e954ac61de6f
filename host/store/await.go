package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// awaitPause is how long Await pauses between two attempts.
const awaitPause = 500 * time.Millisecond

// Await waits until the PostgreSQL database at where lets this user in, for up to wait: one that is started at the same time may refuse
// connections, be starting up or recovering, or have no name yet. What is in the way is logged, again only when it is something else. For a
// directory there is nothing to wait for.
//
// It fails at once where waiting does not help: with a URL that cannot be read, a wrong password, a database that is not there, a
// certificate that does not hold. Errors are as for OpenWith, and ctx's.
func Await(ctx context.Context, where string, options *Options, wait time.Duration) error {
	if !IsURL(where) {
		return nil
	}
	o := options.withDefaults()
	e, _, err := newPostgres(where, newReplica(), o)
	if err != nil {
		return err
	}
	said := ""
	for end := time.Now().Add(wait); ; {
		err := e.knock(ctx)
		left := time.Until(end)
		switch {
		case err == nil && said != "":
			o.Logger.Info("the database answers")
			return nil
		case err == nil || !mayPass(err):
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

// knock makes a connection and closes it.
func (e *postgres) knock(ctx context.Context) error {
	inTime, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := e.connect(inTime)
	if err != nil {
		return e.explainWithin(connectTime, err)
	}
	_ = conn.Close(inTime)
	return nil
}

// mayPass reports whether another attempt may do better than the one that failed so. What a server says that lets nobody in lasts, unless it
// is starting or stopping, cannot be reached by what is in between, or has no room.
func mayPass(err error) bool {
	var own *pgconn.PgError
	if errors.As(err, &own) {
		return strings.HasPrefix(own.Code, "57P") || strings.HasPrefix(own.Code, "08") || strings.HasPrefix(own.Code, "53")
	}
	return errors.Is(err, ErrUnreachable) && !isCertificate(err) && !refusesTLS(err)
}
