package pdksqltest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/pdksqltest"
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdksql"
	"github.com/hako-run/hako/pdk/pdktest"
)

func manifest(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	const text = `
name: notes
permissions:
  sql:
    reason: r
    quota: 1MiB
    migrations:
      - CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0, at TEXT)
      - |
        CREATE TABLE counter (n INTEGER NOT NULL) STRICT;
        INSERT INTO counter VALUES (0);
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type note struct {
	ID   int64      `json:"id"`
	Text string     `json:"text"`
	Done bool       `json:"done"`
	At   *time.Time `json:"at"`
}

func init() {
	pdk.HandleTool("count", func(ctx context.Context, _ struct{}) (string, error) {
		return "", pdksql.Transaction(ctx, func(ctx context.Context) error {
			n, err := pdksql.Select[int](ctx, "SELECT n FROM counter")
			if err != nil {
				return err
			}
			_, err = pdksql.Exec(ctx, "UPDATE counter SET n = ?", n[0]+1)
			return err
		})
	})
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	pdksqltest.Database(t, manifest(t))
	ctx := pdktest.Context(t, pdktest.Options{})
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	result, err := pdksql.Exec(ctx, "INSERT INTO note (text, done, at) VALUES (?, ?, ?)", "買い物\n\"x\"", true, now)
	if err != nil || result != (pdksql.Result{Changes: 1, LastInsertID: 1}) {
		t.Fatal(result, err)
	}
	got, err := pdksql.Select[note](ctx, "SELECT id, text, done, at FROM note")
	if err != nil || len(got) != 1 || got[0].Text != "買い物\n\"x\"" || !got[0].Done || !got[0].At.Equal(now) {
		t.Error(got, err)
	}
	_, err = pdksql.Exec(ctx, "INSERT INTO note (text) VALUES (?)", "買い物\n\"x\"")
	if failure := (*abi.Error)(nil); !errors.As(err, &failure) || failure.Code != abi.CodeConflict ||
		failure.Message != "UNIQUE constraint failed: note.text" {
		t.Errorf("%v", err)
	}
	_, err = pdksql.Query(ctx, "SELECT *\n FROM nothing")
	t.Log(err)
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	pdksqltest.Database(t, manifest(t))
	t.Run("calls", func(t *testing.T) {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 10 {
					if response := pdktest.CallTool(t, "count", struct{}{}, pdktest.Options{}); response.IsError {
						t.Error(response.Content)
					}
				}
			})
		}
		wait.Wait()
	})
	n, err := pdksql.Select[int](pdktest.Context(t, pdktest.Options{}), "SELECT n FROM counter")
	if err != nil || n[0] != 80 {
		t.Error(n, err)
	}
}
