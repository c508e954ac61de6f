package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk/pdksql"
)

type task struct {
	ID          string `json:"task_id"`
	ProjectID   string `json:"project_id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status"`
	Priority    string `json:"priority"`
	AssigneeID  string `json:"assignee_id,omitempty"`
	BlockedBy   idList `json:"blocked_by,omitempty"`
	// OpenBlockers counts those of BlockedBy that are not finished.
	OpenBlockers int `json:"open_blockers,omitempty"`
	// Version counts the changes of the task. A transaction protects a change, not the decision of an agent that thinks
	// for minutes between reading and writing: it may pass the version that it has read.
	Version          int    `json:"version"`
	PendingHandoffID string `json:"pending_handoff_id,omitempty"`
	CreatedAt        string `json:"created_at"`
	UpdatedAt        string `json:"updated_at"`
}

// taskDetail is a task with what its status can change to, and with the unfinished tasks that it waits for.
type taskDetail struct {
	task
	WaitsFor     []blocker `json:"waits_for,omitempty"`
	NextStatuses []string  `json:"next_statuses"`
}

// detail adds what the database knows about a task in the transaction of ctx, or outside of one.
func (t *task) detail(ctx context.Context) (*taskDetail, error) {
	waiting, err := waitsFor(ctx, t.ID)
	out := &taskDetail{*t, waiting, next[t.Status]}
	out.OpenBlockers = len(waiting)
	return out, err
}

// taskColumns are those of a list; descriptions are in details alone.
const taskColumns = `id AS task_id, project_id, title, status, priority, ifnull(assignee_id, '') AS assignee_id, version, created_at, updated_at,
	ifnull((SELECT id FROM handoffs WHERE task_id = tasks.id AND state = 'pending'), '') AS pending_handoff_id,
	ifnull((SELECT group_concat(blocker_id, ' ') FROM (SELECT blocker_id FROM blockers WHERE task_id = tasks.id ORDER BY blocker_id)), '') AS blocked_by,
	(SELECT count(*)` + openBlockers + `) AS open_blockers`

func taskByID(ctx context.Context, id string) (*task, error) {
	return one[task](ctx, tasks, "SELECT description, "+taskColumns+" FROM tasks WHERE id = ?", id)
}

func taskDetailByID(ctx context.Context, id string) (*taskDetail, error) {
	t, err := taskByID(ctx, id)
	if err != nil {
		return nil, err
	}
	return t.detail(ctx)
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

// from returns the tasks that are asked for, as list wants them. One statement with optional conditions would use no
// index.
func (f *taskFilter) from() (from string, values []any) {
	var conditions []string
	for _, c := range []struct{ column, value string }{{"project_id", f.ProjectID}, {"status", f.Status},
		{"assignee_id", f.AssigneeID}} {
		if c.value != "" {
			values = append(values, c.value)
			conditions = append(conditions, c.column+" = ?")
		}
	}
	if len(conditions) == 0 {
		return "tasks", nil
	}
	return "tasks WHERE " + strings.Join(conditions, " AND "), values
}

type taskPage struct {
	extent
	Tasks []task `json:"tasks"`
}

func listTasks(ctx context.Context, in taskFilter) (out taskPage, err error) {
	from, values := in.from()
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) (err error) {
		if out.Tasks, out.extent, err = list[task](ctx, in.paging, taskColumns, from, "seq", values...); err != nil ||
			out.TotalCount > 0 {
			return err
		}
		return assignable(ctx, in.ProjectID, in.AssigneeID)
	})
	return out, err
}

type newTask struct {
	ID          string `json:"task_id"`
	ProjectID   string `json:"project_id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Priority    string `json:"priority"`
	AssigneeID  string `json:"assignee_id"`
	BlockedBy   idList `json:"blocked_by"`
}

func createTask(ctx context.Context, in newTask) (out *taskDetail, err error) {
	err = pdksql.Transaction(ctx, func(ctx context.Context) error {
		id, err := in.add(ctx)
		if err != nil {
			return err
		}
		out, err = taskDetailByID(ctx, id)
		return err
	})
	if err == nil {
		taskChanged(ctx, &out.task)
	}
	return out, err
}

func (in *newTask) add(ctx context.Context) (id string, err error) {
	if err := assignable(ctx, in.ProjectID, in.AssigneeID); err != nil {
		return "", err
	}
	if err := gone(ctx, in.ID); err != nil {
		return "", err
	}
	at := now()
	id, err = tasks.add(ctx, in.ID, `INSERT INTO tasks
		(id, project_id, title, description, status, priority, assignee_id, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''), 1, ?, ?)`,
		in.ProjectID, in.Title, in.Description, cmp.Or(in.Status, todo), cmp.Or(in.Priority, medium), in.AssigneeID, at,
		at)
	if err != nil {
		return "", err
	}
	created := task{ID: id, BlockedBy: in.BlockedBy}
	return id, created.setBlockers(ctx)
}

// assignable refuses a project or an agent that is not known.
func assignable(ctx context.Context, projectID, agentID string) error {
	if err := projects.check(ctx, projectID); err != nil {
		return err
	}
	return agents.check(ctx, agentID)
}

type statusArgs struct {
	TaskID string `json:"task_id"`
	Status string `json:"status"`
	edit
}

type statusChange struct {
	Changed        bool        `json:"changed"`
	PreviousStatus string      `json:"previous_status"`
	Task           *taskDetail `json:"task"`
}

func updateTaskStatus(ctx context.Context, in statusArgs) (*statusChange, error) {
	before, after, err := editTask(ctx, in.TaskID, in.edit, func(_ context.Context, t *task) error {
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
	return &statusChange{before.Version != after.Version, before.Status, after}, nil
}

type updateArgs struct {
	TaskID      string  `json:"task_id"`
	Title       *string `json:"title"`
	Description *string `json:"description"`
	Priority    *string `json:"priority"`
	BlockedBy   *idList `json:"blocked_by"`
	edit
}

type taskUpdate struct {
	Changed bool        `json:"changed"`
	Task    *taskDetail `json:"task"`
}

func updateTask(ctx context.Context, in updateArgs) (*taskUpdate, error) {
	if in.Title == nil && in.Description == nil && in.Priority == nil && in.BlockedBy == nil {
		return nil, refuse(
			"there is nothing to change: give at least one of title, description, priority and blocked_by",
			"変更する内容がありません。title、description、priority、blocked_by のうち少なくとも 1 つを指定してください")
	}
	before, after, err := editTask(ctx, in.TaskID, in.edit, func(_ context.Context, t *task) error {
		set(&t.Title, in.Title)
		set(&t.Description, in.Description)
		set(&t.Priority, in.Priority)
		set(&t.BlockedBy, in.BlockedBy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &taskUpdate{before.Version != after.Version, after}, nil
}

// set gives field the value, if there is one.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

type assignArgs struct {
	TaskID     string `json:"task_id"`
	AssigneeID string `json:"assignee_id"`
	edit
}

type assignment struct {
	Changed            bool        `json:"changed"`
	PreviousAssigneeID string      `json:"previous_assignee_id,omitempty"`
	Task               *taskDetail `json:"task"`
}

// assignTask assigns a task to an agent, and unassigns it where none is named.
func assignTask(ctx context.Context, in assignArgs) (*assignment, error) {
	before, after, err := editTask(ctx, in.TaskID, in.edit, func(ctx context.Context, t *task) error {
		t.AssigneeID = in.AssigneeID
		return agents.check(ctx, in.AssigneeID)
	})
	if err != nil {
		return nil, err
	}
	return &assignment{before.Version != after.Version, before.AssigneeID, after}, nil
}

// now is the time as records have it: RFC 3339 in UTC.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
