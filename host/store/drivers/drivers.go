// Package drivers opens a store by its location: a directory (package sqlite) or the URL of a PostgreSQL database (package
// postgres). It links both databases, so only the program and tests import it.
package drivers

import (
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/postgres"
	"github.com/hako-run/hako/host/store/sqlite"
)

// Options configures the connection to a PostgreSQL database; a directory ignores them, but cannot be opened with
// ReadOnly. A nil *Options means all defaults.
type Options = postgres.Options

// Open opens the store at where, which the caller closes. Errors are those of sqlite.Open and postgres.Open.
func Open(ctx context.Context, where string, options *Options) (*store.Store, error) {
	switch {
	case store.IsURL(where):
		return postgres.Open(ctx, where, options)
	case options != nil && options.ReadOnly:
		return nil, fmt.Errorf("store %s: a directory cannot be opened without changing it", where)
	}
	return sqlite.Open(ctx, where)
}

// Await is postgres.Await for a URL. For a directory it returns at once.
func Await(ctx context.Context, where string, options *Options, wait time.Duration) error {
	if !store.IsURL(where) {
		return nil
	}
	return postgres.Await(ctx, where, options, wait)
}
