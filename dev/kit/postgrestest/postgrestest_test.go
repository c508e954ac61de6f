//go:build unix

package postgrestest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestDatabasesAreEmpty(t *testing.T) {
	t.Parallel()
	for range 2 {
		if _, err := connect(t, Start(t)).Exec(t.Context(), "CREATE TABLE note (text TEXT)"); err != nil {
			t.Error(err)
		}
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	url := s.Database(t)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE note (text TEXT)"); err != nil {
		t.Fatal(err)
	}
	resume := s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil {
		t.Error("a server that is paused answers")
	}
	resume()
	for name, end := range map[string]func(){"stop": func() { s.Stop(t) }, "kill": s.Kill} {
		conn := connect(t, url)
		end()
		if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Errorf("%s: it answers", name)
		}
		s.Start(t)
		if _, err := connect(t, url).Exec(t.Context(), "INSERT INTO note VALUES ('kept')"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
