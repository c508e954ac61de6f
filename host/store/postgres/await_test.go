//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/host/store/postgres"
)

// lines records log lines.
type lines struct {
	mu   sync.Mutex
	all  []string
	said chan struct{} // has an element after the first line
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	select {
	case l.said <- struct{}{}:
	default:
	}
	return len(p), nil
}

// logged returns a logger and its lines.
func logged() (*slog.Logger, *lines) {
	l := &lines{said: make(chan struct{}, 1)}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), l
}

// ages is longer than any test runs.
const ages = 24 * time.Hour

func TestAwait(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	where := server.Database(t)
	server.Stop(t)
	logger, log := logged()
	done := make(chan error, 1)
	go func() { done <- postgres.Await(t.Context(), where, &postgres.Options{Logger: logger}, ages) }()
	<-log.said
	server.Start(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	last := len(log.all) - 1
	if !strings.Contains(log.all[0], "waiting for the database") || !strings.Contains(log.all[0],
		"there is no such socket") || !strings.Contains(log.all[last], "the database responds") {
		t.Errorf("%q", log.all)
	}
	if twice := slices.Compact(slices.Clone(log.all)); len(twice) != len(log.all) {
		t.Errorf("a cause is logged again and again: %q", log.all)
	}
	log.all = nil
	if err := postgres.Await(t.Context(), where, &postgres.Options{Logger: logger}, ages); err != nil || log.all != nil {
		t.Errorf("of a database that is there: %v, %q", err, log.all)
	}
	if err := drivers.Await(t.Context(), t.TempDir(), nil, ages); err != nil {
		t.Errorf("of a directory: %v", err)
	}
}

// TestOutageIsLoggedOnce: an outage of change notifications is logged once, and so is its end.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	logger, log := logged()
	s, err := postgres.Open(t.Context(), server.Database(t), &postgres.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watcher := s.Changes(t.Context(), "notes")
	storetest.Receive(t, watcher)
	server.Stop(t)
	<-log.said
	server.Start(t)
	storetest.Receive(t, watcher)
	log.mu.Lock()
	defer log.mu.Unlock()
	if twice := slices.Compact(slices.Clone(log.all)); len(twice) != len(log.all) ||
		!strings.Contains(twice[len(twice)-1], "sends change notifications again") {
		t.Errorf("%q", log.all)
	}
}

// TestSilentHosts: connections reach the last host of a URL when the others accept connections and say nothing.
func TestSilentHosts(t *testing.T) {
	t.Parallel()
	var hosts []string
	for n := range 6 { // at addresses of their own, for which pgx has a timeout each
		silent, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", n+2))
		if err != nil {
			testprogram.Missing(t, "this system has one loopback address: "+err.Error())
		}
		t.Cleanup(func() { _ = silent.Close() })
		hosts = append(hosts, silent.Addr().String())
	}
	server := postgrestest.NewServer(t, "listen_addresses=127.0.0.1")
	server.Exec(t, "CREATE ROLE hako LOGIN SUPERUSER")
	server.Admit(t, "host all hako 127.0.0.1/32 trust")
	hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", server.Port()))
	where := "postgres://hako@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable&connect_timeout=1"
	if err := postgres.Await(t.Context(), where, nil, time.Nanosecond); err != nil {
		t.Error(err)
	}
	s := storetest.Open(t, where)
	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		_, release, err := s.Lock(t.Context(), "mine")
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
	t.Run("listen", func(t *testing.T) {
		t.Parallel()
		storetest.Receive(t, s.Changes(t.Context(), "notes"))
	})
}

// TestAwaitEndsAtOnce: Await returns permanent errors at once.
func TestAwaitEndsAtOnce(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t, "listen_addresses=127.0.0.1")
	server.Exec(t, "CREATE ROLE hako LOGIN PASSWORD 'another'")
	server.Admit(t, "host all hako 127.0.0.1/32 scram-sha-256", "host all encrypted 127.0.0.1/32 reject")
	at := fmt.Sprintf("@127.0.0.1:%d", server.Port())
	for name, test := range map[string]struct{ where, want string }{
		"a wrong password":        {"postgres://hako:wrong" + at + "/postgres", "password authentication failed"},
		"no such database":        {server.URL("missing"), "create the database"},
		"no such user":            {"postgres://nobody-here" + at + "/postgres", "the user in store"},
		"encryption is wanted":    {"postgres://encrypted" + at + "/postgres", "no encryption"},
		"encryption is not there": {"postgres://hako:another" + at + "/postgres?sslmode=require", "refused TLS"},
		"no URL":                  {"postgres://u@127.0.0.1:port/hako", "port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := postgres.Await(t.Context(), test.where, nil, ages); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestAwaitEnds: Await ends after wait with the last error.
func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	hangs := postgrestest.NewServer(t)
	silent := hangs.Database(t)
	t.Cleanup(hangs.Pause(t))
	for name, where := range map[string]string{
		"nobody listens": "postgres://u@127.0.0.1:1/hako",
		"no name yet":    "postgres://u@nowhere.invalid/hako?sslmode=disable",
		"it hangs":       silent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := postgres.Await(t.Context(), where, nil, time.Nanosecond)
			if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "postgres.wait") {
				t.Errorf("got %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			logger, log := logged()
			go func() { <-log.said; cancel() }()
			if err := postgres.Await(ctx, where, &postgres.Options{Logger: logger}, ages); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
	}
}
