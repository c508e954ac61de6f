package store

import (
	"context"
	"database/sql"
)

// Select runs a query in tx and returns the results of scan for its rows, or nil if there are none. Errors are those of
// the query and of scan.
func Select[T any](ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) (T, error), query string,
	args ...any) ([]T, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// List runs [Select] in its own View.
func List[T any](ctx context.Context, s *Store, scan func(*sql.Rows) (T, error), query string,
	args ...any) (list []T, err error) {
	err = s.View(ctx, func(tx *sql.Tx) error {
		list, err = Select(ctx, tx, scan, query, args...) // View may run this twice
		return err
	})
	return list, err
}

// Column scans a row of one column, for [Select] and [List].
func Column[T any](rows *sql.Rows) (value T, err error) {
	err = rows.Scan(&value)
	return value, err
}
