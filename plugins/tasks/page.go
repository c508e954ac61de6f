package main

import (
	"cmp"
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// paging says which part of a list is asked for: limit entries after the record whose id is the cursor.
type paging struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

// after is the condition that a record comes after the cursor, ?1; without one all do.
func (k kind) after() string {
	return k.table + ".seq > CASE ?1 WHEN '' THEN 0 ELSE (SELECT seq FROM " + k.table + " WHERE id = ?1) END"
}

// before is after for lists that start with the newest.
func (k kind) before() string {
	return k.table + ".seq < CASE ?1 WHEN '' THEN 9223372036854775807 ELSE (SELECT seq FROM " + k.table + " WHERE id = ?1) END"
}

// page reads a part of a list of k's records. The query sees the cursor as ?1 and the limit as ?2, its own arguments from ?3 on. The
// second result is the cursor of the next part, empty if there is none; id gives a record's.
func page[T any](ctx context.Context, k kind, p paging, standard int, id func(*T) string, query string, args ...any) ([]T, string, error) {
	limit := cmp.Or(p.Limit, standard)
	rows, err := pdksql.Select[T](ctx, query, append([]any{p.Cursor, limit + 1}, args...)...)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > limit {
		return rows[:limit], id(&rows[limit-1]), nil
	}
	if len(rows) > 0 || p.Cursor == "" {
		return append([]T{}, rows...), "", nil
	}
	found, err := k.has(ctx, p.Cursor)
	if err == nil && !found {
		err = refuse("%q is no cursor: pass next_cursor of the page before, or none to start at the first",
			"%q は有効なカーソルではありません。前のページの next_cursor を渡すか、省略して最初から取得してください", p.Cursor)
	}
	return []T{}, "", err
}
