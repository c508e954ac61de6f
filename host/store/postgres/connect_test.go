//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/postgres"
)

// TestNobodyIsLetIn: the error of a failed connection is one line with the store, the cause and the remedy, without the
// password.
func TestNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t, "listen_addresses=127.0.0.1")
	const secret = "s3cr3t"
	for _, statement := range []string{
		"CREATE ROLE hako LOGIN PASSWORD 'another'", "CREATE ROLE encrypted LOGIN", "CREATE DATABASE closed",
		"REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
	} {
		server.Exec(t, statement)
	}
	server.Admit(t, "host all hako 127.0.0.1/32 scram-sha-256", "host all encrypted 127.0.0.1/32 reject")
	at := fmt.Sprintf("@127.0.0.1:%d", server.Port())
	tests := map[string]struct {
		url  string
		is   error
		want []string
	}{
		"a wrong password": {"postgres://hako:s3cr3t" + at + "/postgres", store.ErrUnreachable,
			[]string{`password authentication failed for user "hako"`, "postgres.password"}},
		"no password": {"postgres://hako" + at + "/postgres", store.ErrUnreachable,
			[]string{"postgres.password"}},
		"no such user": {"postgres://nobody-here:s3cr3t" + at + "/postgres", store.ErrUnreachable,
			[]string{`role "nobody-here" does not exist`, "the user in store"}},
		"no such database": {"postgres://postgres:s3cr3t" + at + "/missing", store.ErrUnreachable,
			[]string{`database "missing" does not exist`, "create the database"}},
		"a database that is closed": {"postgres://encrypted@/closed?host=" + server.Dir() +
			fmt.Sprintf("&port=%d", server.Port()), store.ErrReadOnly,
			[]string{`permission denied for database "closed"`, "let the user create"}},
		"encryption is wanted": {"postgres://encrypted:s3cr3t" + at + "/postgres", store.ErrUnreachable,
			[]string{"no encryption", "sslmode=verify-full"}},
		"encryption is not there": {"postgres://hako:s3cr3t" + at + "/postgres?sslmode=require", store.ErrUnreachable,
			[]string{"refused TLS", "ssl=on"}},
		"nobody listens": {"postgres://hako:s3cr3t@127.0.0.1:1/hako", store.ErrUnreachable,
			[]string{"postgres://127.0.0.1:1/hako", "connection refused", "that the server runs"}},
		"no socket": {"postgres://hako:s3cr3t@/hako?host=/nonexistent", store.ErrUnreachable,
			[]string{"there is no such socket"}},
		"no such host": {"postgres://hako:s3cr3t@nowhere.invalid/hako?sslmode=disable", store.ErrUnreachable,
			[]string{"the host nowhere.invalid is not known", "the host in store"}},
		"two hosts": {"postgres://hako:s3cr3t@127.0.0.1:1,127.0.0.1:2/hako", store.ErrUnreachable,
			[]string{"127.0.0.1:1: ", "127.0.0.1:2: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := postgres.Open(t.Context(), test.url, nil)
			if err == nil {
				t.Fatal(s.Close())
			}
			if !errors.Is(err, test.is) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("%q is not one line, names the password, or has another cause", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestPoolers: opening a store detects poolers that share sessions, whatever session a client gets next.
func TestPoolers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode     string
		settings []string
	}{
		"transaction":          {"transaction", nil},
		"transaction, in turn": {"transaction", []string{"server_round_robin = 1"}},
		"statement":            {"statement", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Pooled(t, postgrestest.Start(t), test.mode, test.settings...)
			for range 3 { // also with existing connections
				s, err := postgres.Open(t.Context(), where, nil)
				if err == nil {
					t.Fatal("it opens", s.Close())
				}
				if !errors.Is(err, postgres.ErrPooled) || !strings.Contains(err.Error(), "pool_mode=session") ||
					strings.Contains(err.Error(), "\n") {
					t.Error(err)
				}
			}
		})
	}
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		s := storetest.Open(t, postgrestest.Pooled(t, postgrestest.Start(t), "session"))
		if h, err := s.Health(t.Context()); err != nil || !h.Pooler {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
