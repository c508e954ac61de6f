package store

import (
	"context"
	"time"
)

// Health describes a PostgreSQL store as seen from this machine.
type Health struct {
	// Version is the server's version, such as "15.8".
	Version string
	// Latency is the round-trip time of a query.
	Latency time.Duration
	// Skew is the offset of this machine's clock from the server's, with an error of at most Latency.
	Skew time.Duration
	// Encrypted reports whether the connection is encrypted; Local whether the server is on this machine, where
	// encryption is not needed.
	Encrypted, Local bool
	// Connections is the number of connections to all databases of the server, of at most MaxConnections.
	Connections, MaxConnections int
	// ReadOnly reports whether the server is read-only, such as a standby; CanCreate whether this user may create
	// tables.
	ReadOnly, CanCreate bool
	// Pooler reports whether connections go through a pooler, such as PgBouncer.
	Pooler bool
}

// healthChecker is an Engine that has a server.
type healthChecker interface {
	Health(ctx context.Context) (*Health, error)
}

// Health queries the server's state. It returns nil for a directory. Errors are those of Update.
func (s *Store) Health(ctx context.Context) (*Health, error) {
	server, ok := s.engine.(healthChecker)
	if !ok {
		return nil, nil
	}
	health, err := server.Health(ctx)
	return health, s.engine.Explain(err)
}
