package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/pdksql"
)

// idList is a sorted list of ids with spaces between them, as the database gives it. In JSON it is an array.
type idList string

func (l idList) MarshalJSON() ([]byte, error) { return json.Marshal(l.ids()) }

func (l *idList) UnmarshalJSON(data []byte) error {
	var ids []string
	err := json.Unmarshal(data, &ids)
	slices.Sort(ids)
	*l = idList(strings.Join(slices.Compact(ids), " "))
	return err
}

func (l idList) ids() []string { return strings.Fields(string(l)) }

// blocker is a task that another one waits for.
type blocker struct {
	ID     string `json:"task_id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// openBlockers selects from the unfinished tasks that a task of the outer query is blocked by.
const openBlockers = ` FROM blockers JOIN tasks AS blocking ON blocking.id = blocker_id
	WHERE blockers.task_id = tasks.id AND blocking.status NOT IN ('done', 'cancelled')`

// waitsFor returns the unfinished tasks that a task is blocked by.
func waitsFor(ctx context.Context, taskID string) ([]blocker, error) {
	return pdksql.Select[blocker](ctx, `SELECT id AS task_id, title, status FROM blockers JOIN tasks ON id = blocker_id
		WHERE task_id = ? AND status NOT IN ('done', 'cancelled') ORDER BY seq`, taskID)
}

// setBlockers stores what the task is blocked by, in the transaction of ctx. Tasks that would wait for each other are
// refused.
func (t *task) setBlockers(ctx context.Context) error {
	if _, err := pdksql.Exec(ctx, "DELETE FROM blockers WHERE task_id = ?", t.ID); err != nil {
		return err
	}
	for _, id := range t.BlockedBy.ids() {
		if err := t.checkBlocker(ctx, id); err != nil {
			return err
		}
		if _, err := pdksql.Exec(ctx, "INSERT INTO blockers (task_id, blocker_id) VALUES (?, ?)", t.ID,
			id); err != nil {
			return err
		}
	}
	return nil
}

// checkBlocker refuses a blocker that is not known, and one that waits for the task itself.
func (t *task) checkBlocker(ctx context.Context, id string) error {
	if err := tasks.check(ctx, id); err != nil {
		return err
	}
	waiting, err := pdksql.Query(ctx, `WITH RECURSIVE needed (id) AS (
			VALUES (?1) UNION SELECT blocker_id FROM blockers JOIN needed ON task_id = needed.id
		) SELECT 1 FROM needed WHERE id = ?2`, id, t.ID)
	if err != nil || len(waiting.Values) == 0 {
		return err
	}
	return refuse("task %[1]s cannot be blocked by %[2]s, which waits for %[1]s itself: look at blocked_by in get_task(task_id=%[2]q)",
		"タスク %[1]s を %[2]s の完了待ちにはできません。%[2]s 自身が %[1]s を待っています。get_task(task_id=%[2]q) の blocked_by を確認してください",
		t.ID, id)
}
