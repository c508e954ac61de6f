package store

import (
	"context"
	"time"
)

// Health is how a store over PostgreSQL looks from here.
type Health struct {
	// Version is the server's, such as "15.8".
	Version string
	// Latency is how long a question and its answer take.
	Latency time.Duration
	// Skew is how much this machine's clock is ahead of the server's, to within the latency.
	Skew time.Duration
	// Encrypted says that the connection is; Local that the server is on this machine, where it need not be.
	Encrypted, Local bool
	// Connections are those to all databases of the server, of at most MaxConnections.
	Connections, MaxConnections int
	// ReadOnly says that nothing can be written, as on a standby; CanCreate that this user may make tables.
	ReadOnly, CanCreate bool
	// Pooler says that the connections go through a pooler, such as PgBouncer.
	Pooler bool
}

// Health asks the server how it is. It returns nil for a store in a directory. Errors are as for Update.
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
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
		coalesce(has_schema_privilege(current_schema(), 'CREATE'), false), coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
		inet_server_addr() IS NULL OR host(inet_server_addr()) IN ('127.0.0.1', '::1'),
		(SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections')::int`).
		Scan(&h.Version, &pid, &recovery, &readOnly, &h.CanCreate, &h.Encrypted, &h.Local, &h.Connections, &h.MaxConnections)
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
