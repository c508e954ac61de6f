package main

import (
	"cmp"
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// notes are where the work on a task stands.
type notes struct {
	Progress  string `json:"progress,omitempty"`
	Findings  string `json:"findings,omitempty"`
	Blockers  string `json:"blockers,omitempty"`
	NextSteps string `json:"next_steps,omitempty"`
}

// record is what was saved at one time.
type record struct {
	ID string `json:"context_id"`
	notes
	SavedAt string `json:"saved_at"`
}

type saveArgs struct {
	TaskID    string  `json:"task_id"`
	Progress  *string `json:"progress"`
	Findings  *string `json:"findings"`
	Blockers  *string `json:"blockers"`
	NextSteps *string `json:"next_steps"`
}

type savedContext struct {
	TaskID    string `json:"task_id"`
	ContextID string `json:"context_id"`
	Context   notes  `json:"context"`
	SavedAt   string `json:"saved_at"`
}

// saveContext adds a record. Records are never changed, so agents that save at the same time lose nothing.
func saveContext(ctx context.Context, in saveArgs) (*savedContext, error) {
	if in.Progress == nil && in.Findings == nil && in.Blockers == nil && in.NextSteps == nil {
		return nil, refuse("there is nothing to save: give at least one of progress, findings, blockers and next_steps",
			"保存する内容がありません。progress、findings、blockers、next_steps のうち少なくとも 1 つを指定してください")
	}
	if err := tasks.check(ctx, in.TaskID); err != nil {
		return nil, err
	}
	at := now()
	id, err := contexts.add(ctx, "", `INSERT INTO contexts (id, task_id, progress, findings, blockers, next_steps, saved_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		in.TaskID, in.Progress, in.Findings, in.Blockers, in.NextSteps, at)
	if err != nil {
		return nil, err
	}
	changed(ctx, "context://"+in.TaskID)
	current, err := currentContext(ctx, in.TaskID)
	if err != nil {
		return nil, err
	}
	return &savedContext{in.TaskID, id, current.notes, at}, nil
}

// current is a task's notes as they stand.
type current struct {
	notes
	Records int    `json:"records"`
	SavedAt string `json:"saved_at,omitempty"`
}

// currentContext puts a task's notes together: of each the latest that was saved.
func currentContext(ctx context.Context, taskID string) (*current, error) {
	latest := func(column string) string {
		return "ifnull((SELECT " + column + " FROM contexts WHERE task_id = tasks.id AND " + column +
			" IS NOT NULL ORDER BY seq DESC LIMIT 1), '') AS " + column + ", "
	}
	return one[current](ctx, tasks, "SELECT "+latest("progress")+latest("findings")+latest("blockers")+latest("next_steps")+
		latest("saved_at")+"(SELECT count(*) FROM contexts WHERE task_id = tasks.id) AS records FROM tasks WHERE id = ?", taskID)
}

// recordColumns leave out what a record says nothing about.
const recordColumns = `id AS context_id, ifnull(progress, '') AS progress, ifnull(findings, '') AS findings,
	ifnull(blockers, '') AS blockers, ifnull(next_steps, '') AS next_steps, saved_at`

type contextArgs struct {
	paging
	TaskID         string `json:"task_id"`
	IncludeHistory bool   `json:"include_history"`
}

type taskContext struct {
	TaskID     string    `json:"task_id"`
	Context    notes     `json:"context"`
	Records    int       `json:"records"`
	SavedAt    string    `json:"saved_at,omitempty"`
	History    []record  `json:"history,omitempty"`
	NextCursor string    `json:"next_cursor,omitempty"`
	Handoffs   []handoff `json:"handoffs,omitempty"`
}

func contextByTask(ctx context.Context, taskID string) (*taskContext, error) {
	return getTaskContext(ctx, contextArgs{TaskID: taskID})
}

// standardHistory is how many records of the history are returned where the caller does not say.
const standardHistory = 10

func getTaskContext(ctx context.Context, in contextArgs) (out *taskContext, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) error {
		out, err = readContext(ctx, in)
		return err
	})
	return out, err
}

func readContext(ctx context.Context, in contextArgs) (*taskContext, error) {
	stand, err := currentContext(ctx, in.TaskID)
	if err != nil {
		return nil, err
	}
	out := &taskContext{TaskID: in.TaskID, Context: stand.notes, Records: stand.Records, SavedAt: stand.SavedAt}
	if !in.IncludeHistory {
		return out, nil
	}
	out.History, out.NextCursor, err = page(ctx, contexts, in.paging, standardHistory, func(r *record) string { return r.ID },
		"SELECT "+recordColumns+" FROM contexts WHERE task_id = ?3 AND "+contexts.before()+" ORDER BY seq DESC LIMIT ?2", in.TaskID)
	if err != nil {
		return nil, err
	}
	out.Handoffs, err = pdksql.Select[handoff](ctx, selectHandoff+"WHERE task_id = ? ORDER BY handoffs.seq DESC LIMIT ?",
		in.TaskID, cmp.Or(in.Limit, standardHistory))
	return out, err
}
