package authserver

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// dump returns a table as text.
func (w *world) dump(table string) string {
	w.t.Helper()
	var all strings.Builder
	err := w.store.View(w.t.Context(), func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(w.t.Context(), "SELECT * FROM "+table)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				return err
			}
			for _, value := range values {
				fmt.Fprintln(&all, *value.(*any))
			}
		}
		return rows.Err()
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all.String()
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(w.t.Context(), query, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// fill adds clients that nobody uses.
func (w *world) fill(n int) {
	w.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+fmt.Sprint(n)+`)
		INSERT INTO oauth_client (id, metadata, created, used) SELECT 'filled-' || i, '{}', $1, 0 FROM n`, time.Now().UnixMilli())
}

func (w *world) count(table string) (n int) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(w.t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}
