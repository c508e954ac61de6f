package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

// Priorities of a task.
const (
	high   = "high"
	medium = "medium"
	low    = "low"
)

type nextArgs struct {
	AgentID   string `json:"agent_id"`
	ProjectID string `json:"project_id"`
}

type nextTask struct {
	PendingHandoffs int         `json:"pending_handoffs"`
	WaitingTasks    int         `json:"waiting_tasks"`
	Notes           []string    `json:"notes"`
	Task            *taskDetail `json:"task,omitempty"`
}

// workable are the tasks that an agent, ?1, could do in a project, ?2 or any, if they waited for nothing: those
// assigned to it and those assigned to nobody, but for those that it has handed over or that are handed over to
// another.
const workable = ` FROM tasks WHERE status IN ('in_progress', 'todo') AND (assignee_id = ?1 OR assignee_id IS NULL)
	AND (?2 = '' OR project_id = ?2)
	AND NOT EXISTS (SELECT 1 FROM handoffs WHERE task_id = tasks.id AND state = 'pending'
		AND (from_agent_id = ?1 OR assignee_id IS NULL AND to_agent_id <> ?1))
	AND `

// getNextTask finds what an agent should do now: first what it has begun, then what is assigned to it, then what nobody
// has, the more urgent and the older first.
func getNextTask(ctx context.Context, in nextArgs) (out *nextTask, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) error {
		out, err = in.find(ctx)
		return err
	})
	return out, err
}

func (in *nextArgs) find(ctx context.Context) (*nextTask, error) {
	if err := assignable(ctx, in.ProjectID, in.AgentID); err != nil {
		return nil, err
	}
	counts, err := pdksql.Select[nextTask](ctx,
		"SELECT (SELECT count(*) FROM "+acceptable+") AS pending_handoffs, (SELECT count(*)"+workable+
			"EXISTS (SELECT 1"+openBlockers+")) AS waiting_tasks", in.AgentID, in.ProjectID)
	if err != nil {
		return nil, err
	}
	out := &counts[0]
	found, err := pdksql.Select[task](ctx, "SELECT description, "+taskColumns+workable+
		"NOT EXISTS (SELECT 1"+openBlockers+`)
		ORDER BY assignee_id IS NULL, status = 'todo', CASE priority WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END, seq LIMIT 1`,
		in.AgentID, in.ProjectID)
	if err == nil && len(found) > 0 {
		out.Task, err = found[0].detail(ctx)
	}
	out.Notes = in.notes(languageOf(ctx), out)
	return out, err
}

// notes say what to call next.
func (in *nextArgs) notes(l language, out *nextTask) []string {
	notes := []string{}
	if out.PendingHandoffs > 0 {
		notes = append(notes, l.sprintf("%d hand-offs can be accepted: get_pending_handoffs(agent_id=%q) shows them.",
			"受領できるハンドオフが %d 件あります。get_pending_handoffs(agent_id=%q) で確認してください。", out.PendingHandoffs, in.AgentID))
	}
	switch t := out.Task; {
	case t == nil && out.WaitingTasks > 0:
		notes = append(notes, l.sprintf("There is nothing to do now: %d tasks wait for others to be finished.",
			"今できるタスクはありません。%d 件がほかのタスクの完了を待っています。", out.WaitingTasks))
	case t == nil:
		notes = append(notes, l.pick("There is nothing to do.", "できるタスクはありません。"))
	case t.AssigneeID == "":
		notes = append(notes,
			l.sprintf("The task is assigned to nobody. Claim it: assign_task(task_id=%q, assignee_id=%q, agent_id=%[2]q, version=%[3]d)",
				"このタスクには担当者がいません。まず担当してください: assign_task(task_id=%q, assignee_id=%q, agent_id=%[2]q, version=%[3]d)",
				t.ID, in.AgentID, t.Version))
	case t.Status == todo:
		notes = append(notes,
			l.sprintf("Before you begin: update_task_status(task_id=%q, status=\"in_progress\", agent_id=%q)",
				"作業を始めるとき: update_task_status(task_id=%q, status=\"in_progress\", agent_id=%q)", t.ID, in.AgentID))
	}
	return notes
}
