package main

import (
	"cmp"
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// standardPage is the number of entries in a list where the caller does not say.
const standardPage = 50

// paging selects a part of a list.
type paging struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

// extent comes before the entries of a list: how many there are in all, where the rest begins, and what to know about
// them.
type extent struct {
	TotalCount int      `json:"total_count"`
	NextOffset *int     `json:"next_offset"`
	Notes      []string `json:"notes"`
}

// end sets where the rest of a list begins after the first n entries of the part that p asks for.
func (e *extent) end(p paging, n int) {
	e.NextOffset = nil
	if next := p.Offset + n; n > 0 && next < e.TotalCount {
		e.NextOffset = &next
	}
}

// list reads a part of a list in the transaction of ctx. from is the rest of the statement after FROM up to its
// conditions; args are the values of its parameters.
func list[T any](ctx context.Context, p paging, columns, from, order string, args ...any) ([]T, extent, error) {
	e := extent{Notes: []string{}}
	total, err := pdksql.Select[int](ctx, "SELECT count(*) FROM "+from, args...)
	if err != nil {
		return nil, e, err
	}
	e.TotalCount = total[0]
	items, err := pdksql.Select[T](ctx, "SELECT "+columns+" FROM "+from+" ORDER BY "+order+" LIMIT ? OFFSET ?",
		append(args, cmp.Or(p.Limit, standardPage), p.Offset)...)
	e.end(p, len(items))
	e.checkOffset(ctx, p)
	return items, e, err
}

// checkOffset adds a note where the part begins behind the last entry.
func (e *extent) checkOffset(ctx context.Context, p paging) {
	if p.Offset > 0 && p.Offset >= e.TotalCount {
		e.note(ctx, "offset %d is past the end: there are %d entries", "offset %d は末尾を超えています（全 %d 件）", p.Offset,
			e.TotalCount)
	}
}

// note adds a note in the caller's language; both formats get the same arguments.
func (e *extent) note(ctx context.Context, en, ja string, args ...any) {
	e.Notes = append(e.Notes, languageOf(ctx).sprintf(en, ja, args...))
}
