package httpserver

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxConnections limits the open connections of one server, if the process may have four times as many files open.
const maxConnections = 10_000

// connections limits the connections of one server.
type connections struct {
	limit int

	mu   sync.Mutex
	open int
	// waiting are the connections without a complete request, the one that waits longest first. position finds them.
	waiting  list.List
	position map[net.Conn]*list.Element
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, position: map[net.Conn]*list.Element{}}
}

// changed is an http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
		c.wait(conn)
		if c.open > c.limit {
			c.closeOldest()
		}
	case http.StateIdle:
		c.wait(conn)
	case http.StateActive:
		c.forget(conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
		c.forget(conn)
	}
}

func (c *connections) wait(conn net.Conn) {
	c.forget(conn)
	c.position[conn] = c.waiting.PushBack(conn)
}

func (c *connections) forget(conn net.Conn) {
	if element, ok := c.position[conn]; ok {
		c.waiting.Remove(element)
		delete(c.position, conn)
	}
}

// closeOldest closes the connection that has waited longest. That is the new one if all others have requests.
func (c *connections) closeOldest() {
	conn := c.waiting.Front().Value.(net.Conn)
	c.forget(conn)
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // tls.Conn.Close waits for a client that does not read
	}
	_ = conn.Close() // the server notices, and reports StateClosed
}
