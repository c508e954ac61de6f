package main

import (
	"context"
	"strings"

	"github.com/hako-run/hako/pdk/pdksql"
)

type deletion struct {
	TaskID string `json:"task_id"`
	edit
}

type deletedTask struct {
	TaskID    string `json:"task_id"`
	Title     string `json:"title"`
	Reason    string `json:"reason"`
	DeletedBy string `json:"deleted_by,omitempty"`
	DeletedAt string `json:"deleted_at"`
}

// maxBlocked limits the waiting tasks that a refusal names.
const maxBlocked = 5

// deleteTask removes a task with everything on record about it. Its id and those of its hand-offs are kept with the
// reason, so that callers who ask for them get it.
func deleteTask(ctx context.Context, in deletion) (*deletedTask, error) {
	var t *task
	out := &deletedTask{TaskID: in.TaskID, Reason: in.Reason, DeletedBy: in.AgentID, DeletedAt: now()}
	err := pdksql.Transaction(ctx, func(ctx context.Context) (err error) {
		if t, err = taskByID(ctx, in.TaskID); err != nil {
			return err
		}
		if err := in.check(ctx, t); err != nil {
			return err
		}
		out.Title = t.Title
		return out.remove(ctx)
	})
	if err != nil {
		return nil, err
	}
	taskChanged(ctx, t)
	changed(ctx, "context://"+in.TaskID, "handoff://"+in.TaskID)
	return out, nil
}

// check refuses to delete a task that others wait for.
func (in *deletion) check(ctx context.Context, t *task) error {
	if err := in.edit.check(ctx, t); err != nil {
		return err
	}
	waiting, err := pdksql.Select[string](ctx,
		"SELECT task_id FROM blockers WHERE blocker_id = ? ORDER BY task_id LIMIT ?", t.ID, maxBlocked)
	if err != nil || len(waiting) == 0 {
		return err
	}
	return refuse("task %[1]s cannot be deleted, because tasks are blocked by it: %[2]s. Take it out of their blocked_by with update_task first, or call update_task_status(task_id=%[1]q, status=\"cancelled\")",
		"タスク %[1]s の完了を待っているタスク（%[2]s）があるため、削除できません。先に update_task でそれらの blocked_by から外すか、update_task_status(task_id=%[1]q, status=\"cancelled\") を呼び出してください",
		t.ID, strings.Join(waiting, ", "))
}

func (d *deletedTask) remove(ctx context.Context) error {
	if _, err := pdksql.Exec(ctx, `WITH gone (id) AS (VALUES (?1) UNION ALL SELECT id FROM handoffs WHERE task_id = ?1)
		INSERT INTO deleted (id, task_id, title, reason, agent_id, deleted_at) SELECT id, ?1, ?2, ?3, nullif(?4, ''), ?5 FROM gone`,
		d.TaskID, d.Title, d.Reason, d.DeletedBy, d.DeletedAt); err != nil {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM contexts WHERE task_id = ?", "DELETE FROM handoffs WHERE task_id = ?",
		"DELETE FROM changes WHERE task_id = ?",
		"DELETE FROM blockers WHERE task_id = ?", "DELETE FROM tasks WHERE id = ?",
	} {
		if _, err := pdksql.Exec(ctx, statement, d.TaskID); err != nil {
			return err
		}
	}
	return nil
}

// gone refuses the id of a deleted task, or of a hand-off of one.
func gone(ctx context.Context, id string) error {
	found, err := pdksql.Select[deletedTask](ctx,
		`SELECT task_id, title, reason, ifnull(agent_id, '') AS deleted_by, deleted_at
		FROM deleted WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return err
	}
	d := found[0]
	who := ""
	if d.DeletedBy != "" {
		who = " (" + d.DeletedBy + ")"
	}
	if id != d.TaskID {
		return refuse("hand-off %[1]s ended: its task %[2]s (%[3]s) was deleted at %[4]s%[5]s: %[6]s. The tool get_pending_handoffs shows others",
			"ハンドオフ %[1]s は終了しました。タスク %[2]s（%[3]s）が %[4]s に削除されています%[5]s。理由: %[6]s。ほかのハンドオフはツール get_pending_handoffs で確認してください",
			id, d.TaskID, d.Title, d.DeletedAt, who, d.Reason)
	}
	en, ja := tasks.list()
	return refuse("task %[1]s (%[2]s) was deleted at %[3]s%[4]s: %[5]s. Use %[6]s to see which there are",
		"タスク %[1]s（%[2]s）は %[3]s に削除されました%[4]s。理由: %[5]s。%[7]s で確認してください",
		id, d.Title, d.DeletedAt, who, d.Reason, en, ja)
}
