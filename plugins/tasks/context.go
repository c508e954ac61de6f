package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// notes describe the state of the work on a task. Nil means that nothing was said, an empty text that it was cleared.
type notes struct {
	Progress  *string `json:"progress,omitempty"`
	Findings  *string `json:"findings,omitempty"`
	Blockers  *string `json:"blockers,omitempty"`
	NextSteps *string `json:"next_steps,omitempty"`
}

func (n *notes) texts() []*string { return []*string{n.Progress, n.Findings, n.Blockers, n.NextSteps} }

// record is a saved state of the work, with its author if that was said.
type record struct {
	ID      string `json:"context_id"`
	AgentID string `json:"agent_id,omitempty"`
	notes
}

type saveArgs struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"`
	notes
}

type savedContext struct {
	TaskID    string `json:"task_id"`
	ContextID string `json:"context_id"`
	AgentID   string `json:"agent_id,omitempty"`
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
	if err := agents.check(ctx, in.AgentID); err != nil {
		return nil, err
	}
	at := now()
	id, err := contexts.add(ctx, "",
		`INSERT INTO contexts (id, task_id, progress, findings, blockers, next_steps, saved_at, agent_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, ''))`,
		in.TaskID, in.Progress, in.Findings, in.Blockers, in.NextSteps, at, in.AgentID)
	if err != nil {
		return nil, err
	}
	changed(ctx, "context://"+in.TaskID)
	current, err := currentContext(ctx, in.TaskID)
	if err != nil {
		return nil, err
	}
	return &savedContext{in.TaskID, id, in.AgentID, current.notes, at}, nil
}

// current is a task's notes as they stand.
type current struct {
	notes
	SavedAt string `json:"saved_at"`
	SavedBy string `json:"saved_by"`
}

// currentContext puts a task's notes together: of each the latest that was saved.
func currentContext(ctx context.Context, taskID string) (*current, error) {
	latest := func(column string) string {
		return "(SELECT " + column + " FROM contexts WHERE task_id = tasks.id AND " + column +
			" IS NOT NULL ORDER BY seq DESC LIMIT 1)"
	}
	return one[current](ctx, tasks, "SELECT "+latest("progress")+" AS progress, "+latest("findings")+" AS findings, "+
		latest("blockers")+" AS blockers, "+latest("next_steps")+" AS next_steps, ifnull("+latest("saved_at")+
		", '') AS saved_at, ifnull((SELECT agent_id FROM contexts WHERE task_id = tasks.id ORDER BY seq DESC LIMIT 1), '') "+
		"AS saved_by FROM tasks WHERE id = ?", taskID)
}

type contextArgs struct {
	paging
	TaskID         string `json:"task_id"`
	IncludeHistory bool   `json:"include_history"`
	MaxCharacters  int    `json:"max_characters"`
}

// taskContext is the state of the work on a task, and with history how it got there: TotalCount counts the entries of
// the history.
type taskContext struct {
	TaskID string `json:"task_id"`
	extent
	SavedAt        string   `json:"saved_at,omitempty"`
	SavedBy        string   `json:"saved_by,omitempty"`
	Context        notes    `json:"context"`
	PendingHandoff *handoff `json:"pending_handoff,omitempty"`
	History        []entry  `json:"history,omitempty"`
}

func contextByTask(ctx context.Context, taskID string) (*taskContext, error) {
	return getTaskContext(ctx, contextArgs{TaskID: taskID})
}

func getTaskContext(ctx context.Context, in contextArgs) (out *taskContext, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) error {
		out, err = readContext(ctx, in)
		return err
	})
	return out, err
}

// readContext reads in the transaction of ctx. The budget goes to the notes, then to the pending hand-off, then to the
// history.
func readContext(ctx context.Context, in contextArgs) (*taskContext, error) {
	stand, err := currentContext(ctx, in.TaskID)
	if err != nil {
		return nil, err
	}
	b := newBudget(ctx, in.MaxCharacters)
	b.clip(stand.texts()...)
	out := &taskContext{TaskID: in.TaskID, Context: stand.notes, SavedAt: stand.SavedAt, SavedBy: stand.SavedBy}
	if !in.IncludeHistory {
		total, err := pdksql.Select[int](ctx, "SELECT count(*) FROM ("+timeline+")", in.TaskID)
		if err == nil {
			out.extent = extent{TotalCount: total[0], Notes: []string{}}
		}
		return out, err
	}
	waiting, err := pdksql.Select[handoff](ctx, selectHandoff+"WHERE task_id = ? AND state = 'pending'", in.TaskID)
	if err != nil {
		return nil, err
	}
	if len(waiting) > 0 {
		out.PendingHandoff = &waiting[0]
		b.charge(true, out.PendingHandoff.texts()...)
	}
	out.History, out.extent, err = readHistory(ctx, in, b)
	return out, err
}
