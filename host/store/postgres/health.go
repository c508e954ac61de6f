package postgres

import (
	"context"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Health queries the server on a connection of its own.
func (e *engine) Health(ctx context.Context) (*store.Health, error) {
	conn, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	h := new(store.Health)
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
		return nil, err
	}
	h.ReadOnly = recovery || readOnly
	h.Pooler = pid != conn.PgConn().PID()
	start := time.Now()
	var server time.Time
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
		return nil, err
	}
	h.Latency = time.Since(start)
	h.Skew = start.Add(h.Latency / 2).Sub(server)
	return h, nil
}
