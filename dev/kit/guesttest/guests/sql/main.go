// Command sql is a guest for tests that runs given SQL statements.
package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/pdksql"
)

type statement struct {
	SQL string `json:"sql"`
}

type number struct {
	N int `json:"n"`
}

func init() {
	pdk.HandleTool("query", func(ctx context.Context, in statement) (string, error) {
		rows, err := pdksql.Query(ctx, in.SQL)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(rows.Values), nil
	})
	pdk.HandleTool("exec", func(ctx context.Context, in statement) (string, error) {
		_, err := pdksql.Exec(ctx, in.SQL)
		return "", err
	})
	pdk.HandleTool("count", count)
	pdk.HandleTool("values", func(ctx context.Context, _ struct{}) (string, error) { return "", values(ctx) })
	pdk.HandleTool("selects", func(ctx context.Context, in number) (string, error) {
		for range in.N {
			if _, err := pdksql.Query(ctx, "SELECT n FROM counter WHERE rowid = ?", 1); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	pdk.HandleTool("inserts", func(ctx context.Context, in number) (string, error) {
		return "", pdksql.Transaction(ctx, func(ctx context.Context) error {
			for range in.N {
				if _, err := pdksql.Exec(ctx, "INSERT INTO counter VALUES (?)", 1); err != nil {
					return err
				}
			}
			return nil
		})
	})
	pdk.HandleTool("leave_open", func(ctx context.Context, in statement) (string, error) {
		return "", pdksql.Transaction(ctx, func(ctx context.Context) error {
			if _, err := pdksql.Exec(ctx, in.SQL); err != nil {
				return err
			}
			os.Exit(0) // ends the guest without a rollback
			return nil
		})
	})
}

func main() {}

// count increments the counter: it reads and then writes it.
func count(ctx context.Context, _ struct{}) (string, error) {
	return "", pdksql.Transaction(ctx, func(ctx context.Context) error {
		n, err := pdksql.Select[int](ctx, "SELECT n FROM counter")
		if err != nil {
			return err
		}
		_, err = pdksql.Exec(ctx, "UPDATE counter SET n = ?", n[0]+1)
		return err
	})
}

// values writes and reads values of every type.
func values(ctx context.Context) error {
	large := bytes.Repeat([]byte{0, 1, 254, 255}, 100_000)
	sent := []any{nil, int64(math.MaxInt64), int64(math.MinInt64), 1.0, -2.5e-300, math.Inf(-1), "日本語 \"\\\n\x00", "",
		[]byte{}, large, []byte("last")}
	rows, err := pdksql.Query(ctx, "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", sent...)
	if err != nil {
		return err
	}
	for i, got := range rows.Values[0] {
		blob, isBlob := sent[i].([]byte)
		if same, ok := got.([]byte); isBlob && ok && bytes.Equal(same, blob) || !isBlob && got == sent[i] {
			continue
		}
		return fmt.Errorf("value %d: got %#v, want %#v", i, got, sent[i])
	}
	return nil
}
