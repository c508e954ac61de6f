package store

import (
	"context"
	"database/sql"
)

// Select runs a query in tx and returns its rows as scan reads them, nil if there are none. Errors are the query's and scan's.
func Select[T any](ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
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

// List is [Select] in a View of its own.
func List[T any](ctx context.Context, s *Store, scan func(*sql.Rows) (T, error), query string, args ...any) (list []T, err error) {
	err = s.View(ctx, func(tx *sql.Tx) error {
		list, err = Select(ctx, tx, scan, query, args...) // anew where View runs this again
		return err
	})
	return list, err
}

// Column is for [Select] and [List] of one column.
func Column[T any](rows *sql.Rows) (value T, err error) {
	err = rows.Scan(&value)
	return value, err
}
