//go:build unix

// Package postgrestest starts real PostgreSQL servers for tests, on Unix sockets in temporary directories. Start
// returns the URL of a new database on a server that all tests of the process share. NewServer starts a Server for one
// test, which can stop, kill and pause it.
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

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// places are the directories of PostgreSQL's programs in common distributions.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/pgsql/bin"}

// started is the server that all tests of one process share.
var started struct {
	sync.Mutex
	server *Server
	err    error
}

// databases counts the created databases.
var databases atomic.Int64

// Start returns the URL of a new, empty database, which is dropped when the test ends. All tests of a process share one
// server, which starts at the first call and ends with the process. It does not flush to the disk. Start skips the test
// if PostgreSQL is not installed (see testprogram.Find).
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

// shared starts the shared server of Start.
func shared(programs string) (*Server, error) {
	s, err := newServer(programs, os.TempDir(), nil, nil)
	if err != nil {
		return nil, err
	}
	return s, s.start(true)
}

// Server is a PostgreSQL server that a test can stop and start.
type Server struct {
	programs string
	dir      string // contains data, socket and log
	port     int
	settings []string
	initdb   []string // additional arguments
	keeper   *keeper  // nil if the server does not run
}

// NewServer starts a server for one test and stops it when the test ends. settings have the form name=value of
// postgresql.conf. By default the server does not flush to the disk and listens on a Unix socket only.
func NewServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newTestServer(t, nil, settings)
}

func newTestServer(t testing.TB, initdb, settings []string) *Server {
	t.Helper()
	s, err := newServer(find(t), os.TempDir(), initdb, settings) // the path of t.TempDir is too long for a socket
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

// newServer creates the data directory.
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

// freePort returns a free TCP port, which is also in the name of the socket.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// initialize creates the data directory. It copies the one of the template, unless initdb has arguments of its own.
func (s *Server) initialize() error {
	if s.initdb == nil {
		from, err := template(s.programs)
		if err != nil {
			return err
		}
		return s.runAsServer("cp", "-Rp", from, s.data())
	}
	return s.runInitdb()
}

func (s *Server) runInitdb() error {
	return s.runAsServer(filepath.Join(s.programs, "initdb"),
		append([]string{"--pgdata", s.data(), "--username", "postgres", "--auth", "trust",
			"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"}, s.initdb...)...)
}

// runAsServer runs a program in the server's directory as its account.
func (s *Server) runAsServer(name string, args ...string) error {
	command := asServer(name, args...)
	command.Dir = s.dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}

// templateOnce makes the data directory that all servers of the process copy, because initdb takes longer.
var templateOnce struct {
	sync.Once
	data string
	err  error
}

// template returns a data directory as initdb makes it, which is removed when the process ends.
func template(programs string) (string, error) {
	made := &templateOnce
	made.Do(func() {
		var dir string
		if dir, made.err = os.MkdirTemp(os.TempDir(), "hako-pg-"); made.err != nil {
			return
		}
		s := &Server{programs: programs, dir: dir}
		made.data = s.data()
		for _, step := range []func() error{
			func() error { return giveAway(dir) }, s.runInitdb, func() error { return removeAtExit(dir) },
		} {
			if made.err = step(); made.err != nil {
				made.err = errors.Join(made.err, os.RemoveAll(dir))
				return
			}
		}
	})
	return made.data, made.err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Port returns the TCP port of the server, which is used if listen_addresses is set, and which is in the name of its
// socket.
func (s *Server) Port() int { return s.port }

// Dir returns the directory with the server's data (data), log (log) and socket.
func (s *Server) Dir() string { return s.dir }

// URL returns the URL of a database over the socket, as the superuser.
func (s *Server) URL(database string) string {
	query := url.Values{"host": {s.dir}, "port": {strconv.Itoa(s.port)}}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database,
		RawQuery: query.Encode()}).String()
}

// Database creates an empty database and returns its URL. It is dropped when the test ends, if the server runs then.
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

// Try is Exec for SQL that may fail.
func (s *Server) Try(statement string) error { return s.exec(context.Background(), statement) }

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// RequirePasswords makes the server require a password from a user.
func (s *Server) RequirePasswords(t testing.TB, user string) {
	t.Helper()
	s.Admit(t, "local all "+user+" scram-sha-256")
}

// Admit prepends lines to pg_hba.conf, the rules of client authentication.
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
