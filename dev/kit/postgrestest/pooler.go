//go:build unix

package postgrestest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// Pooled starts a PgBouncer for the test and returns the URL of a database of this package through it. mode is its
// pool_mode: "session", "transaction" or "statement". settings are further lines of pgbouncer.ini.
func Pooled(t testing.TB, database, mode string, settings ...string) string {
	t.Helper()
	where, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(os.TempDir(), "hako-pb-") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err == nil {
		err = giveAway(dir)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), pooling(where, dir, port, mode, settings), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{command: asServer("/bin/sh", "-c", keepPooler, "sh", dir,
		testprogram.Find(t, "pgbouncer", "/usr/sbin"), filepath.Join(dir, "pgbouncer.ini"))}
	if k.input, err = k.command.StdinPipe(); err == nil {
		err = k.command.Start()
	}
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	t.Cleanup(k.end)
	query := where.Query()
	query.Set("host", dir)
	query.Set("port", strconv.Itoa(port))
	where.RawQuery = query.Encode()
	answers(t, where.String(), filepath.Join(dir, "log"))
	return where.String()
}

// pooling returns PgBouncer's configuration for one database.
func pooling(where *url.URL, dir string, port int, mode string, settings []string) []byte {
	query := where.Query()
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = "+
		"%d\nauth_type = any\npool_mode = %s\n"+
		"default_pool_size = 100\nmax_client_conn = 1000\n", query.Get("host"), query.Get("port"),
		where.User.Username(), dir, port, mode)
	for _, line := range settings {
		text += line + "\n"
	}
	return []byte(text)
}

// answers waits until a database answers.
func answers(t testing.TB, where, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, where)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log)
			t.Fatalf("it does not answer: %v: its log: %s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
