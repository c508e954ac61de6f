package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manager is a service manager that services tell of their states.
type manager struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "hako") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &manager{t: t, path: filepath.Join(dir, "notify")}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.conn.Close() })
	return m
}

// want waits for states that begin so, in this order, with others in between.
func (m *manager) want(states ...string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	for len(states) > 0 {
		buffer := make([]byte, 1000)
		n, err := m.conn.Read(buffer)
		if err != nil {
			m.t.Fatalf("no %q: %v", states[0], err)
		}
		if strings.HasPrefix(string(buffer[:n]), states[0]) {
			states = states[1:]
		}
	}
}
