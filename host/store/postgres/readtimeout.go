package postgres

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// withReadTimeout returns a dial function for connections whose reads fail after limit without data. Otherwise a read
// from a vanished server would wait for the kernel's timeout of a quarter of an hour.
func withReadTimeout(dial pgconn.DialFunc, limit time.Duration) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &readTimeoutConn{Conn: conn, limit: limit}, nil
	}
}

type readTimeoutConn struct {
	net.Conn
	limit time.Duration

	mu  sync.Mutex // guards set, and the deadline of reads
	set bool       // whether the driver has set a deadline
}

func (c *readTimeoutConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if !c.set {
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.limit))
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

func (c *readTimeoutConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

func (c *readTimeoutConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = !t.IsZero()
	return c.Conn.SetReadDeadline(t)
}
