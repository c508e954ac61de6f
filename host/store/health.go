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

// Health queries the server's state. It returns nil for a directory. Errors are those of Update.
func (s *Store) Health(ctx context.Context) (*Health, error) {
	e, ok := s.engine.(*postgres)
	if !ok {
		return nil, nil
	}
	h := new(Health)
	if err := e.health(ctx, h); err != nil {
		return nil, e.explain(err)
	}
	return h, nil
}

func (e *postgres) health(ctx context.Context, h *Health) error {
	conn, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var pid uint32
	var recovery, readOnly bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_backend_pid(), pg_is_in_recovery(),
		current_setting('transaction_read_only')::bool,
		coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
		coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
		inet_server_addr() IS NULL OR host(inet_server_addr()) IN ('127.0.0.1', '::1'),
		(SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections')::int`).
		Scan(&h.Version, &pid, &recovery, &readOnly, &h.CanCreate, &h.Encrypted, &h.Local,
			&h.Connections, &h.MaxConnections)
	if err != nil {
		return err
	}
	h.ReadOnly = recovery || readOnly
	h.Pooler = pid != conn.PgConn().PID()
	start := time.Now()
	var server time.Time
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
		return err
	}
	h.Latency = time.Since(start)
	h.Skew = start.Add(h.Latency / 2).Sub(server)
	return nil
}
