package config

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// Postgres has the settings of a store that is a PostgreSQL database.
type Postgres struct {
	// Password is the source of the user's password; zero means the URL or libpq's environment variables.
	Password         secret.Source
	Connections      int
	StatementTimeout time.Duration
	// Wait bounds the wait of a starting server for the database.
	Wait time.Duration
	// Dir is a directory of this machine, for what may be lost.
	Dir string
}

func (p *Postgres) table() []setting {
	return []setting{
		{key: "postgres.password", value: &p.Password},
		{key: "postgres.connections", value: &p.Connections, fallback: "10"},
		{key: "postgres.statementTimeout", value: &p.StatementTimeout, fallback: "10s"},
		{key: "postgres.wait", value: &p.Wait, fallback: "60s"},
		{key: "postgres.dir", value: &p.Dir, path: true},
	}
}

// checkStore refuses the URL of another database, or a misspelt one, which would otherwise become a directory.
func checkStore(text string) error {
	scheme, _, ok := strings.Cut(text, ":")
	if ok && len(scheme) > 1 && !store.IsURL(text) && !strings.ContainsAny(scheme, `./\`) { // C: is a drive
		// without the text, which may hold a password
		return errors.New("must be a directory or the URL of a PostgreSQL database: postgres://USER@HOST:PORT/DATABASE")
	}
	return nil
}

// OpenStore opens the store as it is configured; the caller closes it.
func (c *Config) OpenStore(ctx context.Context, logger *slog.Logger) (*store.Store, error) {
	return drivers.Open(ctx, c.Store, c.storeOptions(logger))
}

// InspectStore opens the store, which must be a database, without changing it. The caller closes it.
func (c *Config) InspectStore(ctx context.Context, logger *slog.Logger) (*store.Store, error) {
	o := c.storeOptions(logger)
	o.ReadOnly = true
	return drivers.Open(ctx, c.Store, o)
}

// AwaitStore waits until the store can be opened, if it is a database.
func (c *Config) AwaitStore(ctx context.Context, logger *slog.Logger) error {
	return drivers.Await(ctx, c.Store, c.storeOptions(logger), c.Postgres.Wait)
}

func (c *Config) storeOptions(logger *slog.Logger) *drivers.Options {
	o := &drivers.Options{
		Dir: c.StateDir(), Connections: c.Postgres.Connections, StatementTimeout: c.Postgres.StatementTimeout,
		Logger: logger,
	}
	if !c.Postgres.Password.IsZero() {
		o.Password = c.Postgres.Password.Read
	}
	return o
}

// StateDir is the directory on this machine for the host's state: the store itself, or, where that is a PostgreSQL
// database, one whose contents may be lost.
func (c *Config) StateDir() string {
	switch {
	case !store.IsURL(c.Store):
		return c.Store
	case c.Postgres.Dir != "":
		return c.Postgres.Dir
	}
	return filepath.Join(c.Cache, "store")
}
