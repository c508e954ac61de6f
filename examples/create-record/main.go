// Command create-record keeps records in a database of its own. It shows the permission sql: the manifest's migration
// makes the table, and each tenant has one of its own.
package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/pdksql"
)

type record struct {
	ID      int64           `json:"id"`
	Table   string          `json:"table"`
	Data    json.RawMessage `json:"data"`
	Created time.Time       `json:"created"`
}

type records struct {
	Records []record `json:"records"`
}

func init() {
	pdk.HandleTool("create_record", func(ctx context.Context, in record) (record, error) {
		rows, err := pdksql.Select[record](ctx,
			`INSERT INTO record ("table", data, created) VALUES (?, ?, ?) RETURNING id, "table", data, created`,
			in.Table, in.Data, time.Now().UTC().Truncate(time.Second))
		if err != nil {
			return record{}, err
		}
		return rows[0], nil
	})
	pdk.HandleTool("read_records", func(ctx context.Context, in record) (records, error) {
		rows, err := pdksql.Select[record](ctx,
			`SELECT id, "table", data, created FROM record WHERE "table" = ? ORDER BY id DESC LIMIT 100`, in.Table)
		return records{rows}, err
	})
}

func main() {}
