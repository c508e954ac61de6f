//go:build !wasip1

package pdksql

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativesql"
)

// Outside of Wasm the database is that of package pdksqltest.

var errNoDatabase = &abi.Error{Code: abi.CodeNotGranted,
	Message: "outside of a host there is a database only in tests: " +
		"pdksqltest.Database(t, \"manifest.yaml\") makes one, and pdktest.Context(t, ...) is the context to use it with"}

func hostQuery(ctx context.Context, s *abi.SQLStatement) (*abi.SQLResult, error) {
	session := nativesql.FromContext(ctx)
	if session == nil {
		return nil, errNoDatabase
	}
	return session.Query(ctx, s), nil
}

func hostExec(ctx context.Context, s *abi.SQLStatement) (*abi.SQLResult, error) {
	session := nativesql.FromContext(ctx)
	if session == nil {
		return nil, errNoDatabase
	}
	return session.Exec(ctx, s), nil
}

func hostBegin(ctx context.Context, write bool) error {
	return withSession(ctx, func(s nativesql.Session) *abi.Error { return s.Begin(ctx, write) })
}

func hostCommit(ctx context.Context) error {
	return withSession(ctx, func(s nativesql.Session) *abi.Error { return s.Commit(ctx) })
}

func hostRollback(ctx context.Context) error {
	return withSession(ctx, func(s nativesql.Session) *abi.Error { return s.Rollback(ctx) })
}

func withSession(ctx context.Context, do func(nativesql.Session) *abi.Error) error {
	session := nativesql.FromContext(ctx)
	if session == nil {
		return errNoDatabase
	}
	if err := do(session); err != nil {
		return err
	}
	return nil
}
