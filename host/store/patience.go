package store

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// impatient makes connections whose reads fail when nothing has come for limit, so that a server or a network that has gone without a word
// holds nobody up: the kernel alone would wait for a quarter of an hour.
func impatient(dial pgconn.DialFunc, limit time.Duration) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &impatientConn{Conn: conn, limit: limit}, nil
	}
}

type impatientConn struct {
	net.Conn
	limit time.Duration

	mu  sync.Mutex // guards set, and the deadline of reads
	set bool       // the driver has set a deadline
}

func (c *impatientConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if !c.set {
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.limit))
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

func (c *impatientConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

func (c *impatientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = !t.IsZero()
	return c.Conn.SetReadDeadline(t)
}
