//go:build unix

// Package postgrestest gives tests a PostgreSQL server of their own: a real one, made anew, on a unix socket, gone with the tests.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/internal/testprogram"
)

// places are where distributions put PostgreSQL's programs.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin"}

// started is the server that all tests of one process share.
var started struct {
	sync.Mutex
	server *Server
	err    error
}

// databases numbers them.
var databases atomic.Int64

// Start returns the URL of a new, empty database. All tests of a process share one server, which is started at the first call and
// ends with the process; the database is dropped when the test ends. The server does not flush to the disk. A test is skipped where
// PostgreSQL is not installed (see testprogram.Find).
func Start(t testing.TB) string {
	t.Helper()
	programs := find(t)
	started.Lock()
	defer started.Unlock()
	if started.server == nil && started.err == nil {
		started.server, started.err = shared(programs)
	}
	if started.err != nil {
		t.Fatalf("start PostgreSQL: %v", started.err)
	}
	return started.server.Database(t)
}

// find returns the directory of the server's programs.
func find(t testing.TB) string {
	t.Helper()
	return filepath.Dir(testprogram.Find(t, "initdb", places...))
}

// shared starts the server of Start.
func shared(programs string) (*Server, error) {
	s, err := newServer(programs, os.TempDir(), nil, nil)
	if err != nil {
		return nil, err
	}
	return s, s.start(true)
}

// Server is a PostgreSQL server that a test may stop and start.
type Server struct {
	programs string
	dir      string // holds the data, the socket and the log
	port     int
	settings []string
	initdb   []string // further arguments
	keeper   *keeper  // nil: it does not run
}

// NewServer starts a server for this test alone, which ends with it. Settings are of the form name=value, as of postgresql.conf; without
// any the server does not flush to the disk, and listens on a unix socket only.
func NewServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newTestServer(t, nil, settings)
}

func newTestServer(t testing.TB, initdb, settings []string) *Server {
	t.Helper()
	s, err := newServer(find(t), os.TempDir(), initdb, settings) // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatalf("make a PostgreSQL server: %v", err)
	}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(s.dir)
	})
	s.Start(t)
	return s
}

// newServer makes the data directory.
func newServer(programs, tmp string, initdb, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp(tmp, "hako-pg-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err == nil {
		err = giveAway(dir)
	}
	s := &Server{programs: programs, dir: dir, port: port, settings: settings, initdb: initdb}
	if err == nil {
		err = s.initialize()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// freePort is one for TCP, which names the socket too.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (s *Server) initialize() error {
	command := asServer(filepath.Join(s.programs, "initdb"), append([]string{"--pgdata", s.data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"}, s.initdb...)...)
	command.Dir = s.dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Port is where the server listens if the setting listen_addresses names an address, and what its socket is named after.
func (s *Server) Port() int { return s.port }

// Dir is the directory with the server's data (data), its log (log) and its socket.
func (s *Server) Dir() string { return s.dir }

// URL is that of a database over the socket, as the superuser.
func (s *Server) URL(database string) string {
	query := url.Values{"host": {s.dir}, "port": {strconv.Itoa(s.port)}}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: query.Encode()}).String()
}

// Database makes an empty database and returns its URL. It is dropped when the test ends, if the server runs then.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { _ = s.exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.URL(name)
}

// Exec runs SQL as the superuser, in the database postgres.
func (s *Server) Exec(t testing.TB, statement string) {
	t.Helper()
	if err := s.exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Try runs SQL that may fail.
func (s *Server) Try(statement string) error { return s.exec(context.Background(), statement) }

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// RequirePasswords makes the server ask a user for the password.
func (s *Server) RequirePasswords(t testing.TB, user string) {
	t.Helper()
	s.Admit(t, "local all "+user+" scram-sha-256")
}

// Admit puts lines before those of pg_hba.conf, which say who is let in, and how.
func (s *Server) Admit(t testing.TB, lines ...string) {
	t.Helper()
	path := filepath.Join(s.data(), "pg_hba.conf")
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte(strings.Join(lines, "\n")+"\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "SELECT pg_reload_conf()")
}
