package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// edit holds who changes a task, the version that the decision was made on, and the reason. All of it may be left out.
type edit struct {
	AgentID string `json:"agent_id"`
	Version int    `json:"version"`
	Reason  string `json:"reason"`
}

// check refuses an agent that is not known, and a decision that was made on another version of the task.
func (e *edit) check(ctx context.Context, t *task) error {
	if e.Version != 0 && e.Version != t.Version {
		return refuse(
			"task %[1]s has changed: it is at version %[2]d now, not %[3]d. Look at it with get_task(task_id=%[1]q) and decide again",
			"タスク %[1]s は変更されています（現在のバージョンは %[2]d、指定は %[3]d）。get_task(task_id=%[1]q) で確認し、判断し直してください",
			t.ID, t.Version, e.Version)
	}
	return agents.check(ctx, e.AgentID)
}

// change is an entry of a task's history: one field of it that somebody changed.
type change struct {
	Field   string `json:"field"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// changesOf returns what is different between two states of a task.
func changesOf(before, after *task) (list []change) {
	for _, c := range []change{
		{Field: "status", Before: before.Status, After: after.Status},
		{Field: "assignee", Before: before.AssigneeID, After: after.AssigneeID},
		{Field: "title", Before: before.Title, After: after.Title},
		{Field: "description", Before: before.Description, After: after.Description},
		{Field: "priority", Before: before.Priority, After: after.Priority},
		{Field: "blocked_by", Before: string(before.BlockedBy), After: string(after.BlockedBy)},
	} {
		if c.Before != c.After {
			list = append(list, c)
		}
	}
	return list
}

// changeTask changes a task in the transaction of ctx: change sees it as it is and may set what changesOf compares. The
// history keeps who changed what, and a pending hand-off ends where the task is finished or gets another assignee.
func changeTask(ctx context.Context, id string, e edit, change func(context.Context, *task) error) (before, after *task,
	err error) {
	if before, err = taskByID(ctx, id); err != nil {
		return nil, nil, err
	}
	if err := e.check(ctx, before); err != nil {
		return nil, nil, err
	}
	copied := *before
	after = &copied
	if err := change(ctx, after); err != nil {
		return before, after, err
	}
	changes := changesOf(before, after)
	if len(changes) == 0 {
		return before, after, nil
	}
	after.Version, after.UpdatedAt = before.Version+1, now()
	if _, err := pdksql.Exec(ctx,
		`UPDATE tasks SET status = ?, assignee_id = nullif(?, ''), title = ?, description = ?, priority = ?,
		version = ?, updated_at = ? WHERE id = ?`,
		after.Status, after.AssigneeID, after.Title, after.Description, after.Priority, after.Version, after.UpdatedAt,
		id); err != nil {
		return before, after, err
	}
	for _, c := range changes {
		if err := c.add(ctx, after, e); err != nil {
			return before, after, err
		}
	}
	return before, after, endHandoff(ctx, before, after, e)
}

// add stores a change of the task.
func (c *change) add(ctx context.Context, after *task, e edit) error {
	switch c.Field {
	case "blocked_by":
		if err := after.setBlockers(ctx); err != nil {
			return err
		}
	case "description":
		c.After = "" // it is long, and in the task
	}
	_, err := pdksql.Exec(ctx, `INSERT INTO changes (task_id, field, before, after, agent_id, reason, changed_at)
		VALUES (?, ?, ?, ?, nullif(?, ''), ?, ?)`, after.ID, c.Field, c.Before, c.After, e.AgentID, e.Reason,
		after.UpdatedAt)
	return err
}

// editTask runs changeTask in a transaction of its own, and announces what has changed.
func editTask(ctx context.Context, id string, e edit, change func(context.Context, *task) error) (before *task,
	after *taskDetail, err error) {
	err = pdksql.Transaction(ctx, func(ctx context.Context) error {
		var changed *task
		if before, changed, err = changeTask(ctx, id, e, change); err != nil {
			return err
		}
		after, err = changed.detail(ctx)
		return err
	})
	if err == nil && before.Version != after.Version {
		taskChanged(ctx, before, &after.task)
	}
	return before, after, err
}
