package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/pdk/pdksql"
)

type task struct {
	ID          string `json:"task_id"`
	ProjectID   string `json:"project_id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status"`
	AssigneeID  string `json:"assignee_id,omitempty"`
	// Version counts the states that the task has had: combinations of status and assignee.
	Version          int    `json:"version"`
	PendingHandoffID string `json:"pending_handoff_id,omitempty"`
	CreatedAt        string `json:"created_at"`
	UpdatedAt        string `json:"updated_at"`
}

// taskDetail is a task with what its status can change to.
type taskDetail struct {
	task
	NextStatuses []string `json:"next_statuses"`
}

func (t *task) detail() *taskDetail { return &taskDetail{*t, next[t.Status]} }

// taskColumns are those of a list; descriptions are in details alone.
const taskColumns = `id AS task_id, project_id, title, status, ifnull(assignee_id, '') AS assignee_id, version, created_at, updated_at,
	ifnull((SELECT id FROM handoffs WHERE task_id = tasks.id AND state = 'pending'), '') AS pending_handoff_id`

func taskByID(ctx context.Context, id string) (*task, error) {
	return one[task](ctx, tasks, "SELECT description, "+taskColumns+" FROM tasks WHERE id = ?", id)
}

func taskDetailByID(ctx context.Context, id string) (*taskDetail, error) {
	t, err := taskByID(ctx, id)
	if err != nil {
		return nil, err
	}
	return t.detail(), nil
}

type taskArgs struct {
	TaskID string `json:"task_id"`
}

func getTask(ctx context.Context, in taskArgs) (*taskDetail, error) {
	return taskDetailByID(ctx, in.TaskID)
}

type taskFilter struct {
	paging
	ProjectID  string `json:"project_id"`
	Status     string `json:"status"`
	AssigneeID string `json:"assignee_id"`
}

// where returns the conditions that are asked for and their values, numbered as page wants them. One statement with optional
// conditions would use no index.
func (f *taskFilter) where() (conditions string, values []any) {
	for _, c := range []struct{ column, value string }{{"project_id", f.ProjectID}, {"status", f.Status}, {"assignee_id", f.AssigneeID}} {
		if c.value != "" {
			values = append(values, c.value)
			conditions += fmt.Sprintf(" AND %s = ?%d", c.column, len(values)+2)
		}
	}
	return conditions, values
}

type taskPage struct {
	Tasks      []task `json:"tasks"`
	NextCursor string `json:"next_cursor,omitempty"`
}

func listTasks(ctx context.Context, in taskFilter) (out taskPage, err error) {
	where, values := in.where()
	out.Tasks, out.NextCursor, err = page(ctx, tasks, in.paging, 50, func(t *task) string { return t.ID },
		"SELECT "+taskColumns+" FROM tasks WHERE "+tasks.after()+where+" ORDER BY seq LIMIT ?2", values...)
	if err != nil || len(out.Tasks) > 0 {
		return out, err
	}
	return out, assignable(ctx, in.ProjectID, in.AssigneeID)
}

type newTask struct {
	ID          string `json:"task_id"`
	ProjectID   string `json:"project_id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Status      string `json:"status"`
	AssigneeID  string `json:"assignee_id"`
}

func createTask(ctx context.Context, in newTask) (*taskDetail, error) {
	if err := assignable(ctx, in.ProjectID, in.AssigneeID); err != nil {
		return nil, err
	}
	at := now()
	id, err := tasks.add(ctx, in.ID, `INSERT INTO tasks
		(id, project_id, title, description, status, assignee_id, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, nullif(?, ''), 1, ?, ?)`,
		in.ProjectID, in.Title, in.Description, cmp.Or(in.Status, todo), in.AssigneeID, at, at)
	if err != nil {
		return nil, err
	}
	created, err := taskByID(ctx, id)
	if err != nil {
		return nil, err
	}
	taskChanged(ctx, created)
	return created.detail(), nil
}

// assignable refuses a project or an agent that is not known.
func assignable(ctx context.Context, projectID, agentID string) error {
	if err := projects.check(ctx, projectID); err != nil {
		return err
	}
	return agents.check(ctx, agentID)
}

// changeTask changes a task in the transaction of ctx: change sees it as it is and may set status and assignee. A version that is not
// zero must be the task's.
func changeTask(ctx context.Context, id string, version int, change func(context.Context, *task) error) (before, after *task, err error) {
	if before, err = taskByID(ctx, id); err != nil {
		return nil, nil, err
	}
	if version != 0 && version != before.Version {
		return nil, nil, refuse(
			"task %[1]s has changed: it is at version %[2]d now, not %[3]d. Look at it with get_task(task_id=%[1]q) and decide again",
			"タスク %[1]s は変更されています（現在のバージョンは %[2]d、指定は %[3]d）。get_task(task_id=%[1]q) で確認し、判断し直してください",
			id, before.Version, version)
	}
	copied := *before
	after = &copied
	if err := change(ctx, after); err != nil || *after == *before {
		return before, after, err
	}
	after.Version, after.UpdatedAt = before.Version+1, now()
	_, err = pdksql.Exec(ctx, "UPDATE tasks SET status = ?, assignee_id = nullif(?, ''), version = ?, updated_at = ? WHERE id = ?",
		after.Status, after.AssigneeID, after.Version, after.UpdatedAt, id)
	return before, after, err
}

// editTask runs changeTask in a transaction of its own, and announces what has changed.
func editTask(ctx context.Context, id string, version int, change func(context.Context, *task) error) (before, after *task, err error) {
	err = pdksql.Transaction(ctx, func(ctx context.Context) error {
		before, after, err = changeTask(ctx, id, version, change)
		return err
	})
	if err == nil && before.Version != after.Version {
		taskChanged(ctx, before, after)
	}
	return before, after, err
}

type statusArgs struct {
	TaskID  string `json:"task_id"`
	Status  string `json:"status"`
	Version int    `json:"version"`
}

type statusChange struct {
	Changed        bool        `json:"changed"`
	PreviousStatus string      `json:"previous_status"`
	Task           *taskDetail `json:"task"`
}

func updateTaskStatus(ctx context.Context, in statusArgs) (*statusChange, error) {
	before, after, err := editTask(ctx, in.TaskID, in.Version, func(_ context.Context, t *task) error {
		if t.Status == in.Status {
			return nil
		}
		err := checkTransition(t.ID, t.Status, in.Status)
		t.Status = in.Status
		return err
	})
	if err != nil {
		return nil, err
	}
	return &statusChange{before.Version != after.Version, before.Status, after.detail()}, nil
}

type assignArgs struct {
	TaskID     string `json:"task_id"`
	AssigneeID string `json:"assignee_id"`
	Version    int    `json:"version"`
}

type assignment struct {
	Changed            bool        `json:"changed"`
	PreviousAssigneeID string      `json:"previous_assignee_id,omitempty"`
	Task               *taskDetail `json:"task"`
}

func assignTask(ctx context.Context, in assignArgs) (*assignment, error) {
	before, after, err := editTask(ctx, in.TaskID, in.Version, func(ctx context.Context, t *task) error {
		t.AssigneeID = in.AssigneeID
		return agents.check(ctx, in.AssigneeID)
	})
	if err != nil {
		return nil, err
	}
	return &assignment{before.Version != after.Version, before.AssigneeID, after.detail()}, nil
}

// now is the time as records have it: RFC 3339 in UTC.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
