package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

type handoff struct {
	ID              string `json:"handoff_id"`
	TaskID          string `json:"task_id"`
	TaskTitle       string `json:"task_title"`
	FromAgentID     string `json:"from_agent_id"`
	ToAgentID       string `json:"to_agent_id,omitempty"`
	Summary         string `json:"summary"`
	Context         string `json:"context,omitempty"`
	Recommendations string `json:"recommendations,omitempty"`
	State           string `json:"state"`
	CreatedAt       string `json:"created_at"`
	AcceptedBy      string `json:"accepted_by,omitempty"`
	AcceptedAt      string `json:"accepted_at,omitempty"`
}

// States of a hand-off.
const (
	pending  = "pending"
	accepted = "accepted"
	replaced = "replaced" // by a later one of the same task
)

const selectHandoff = `SELECT handoffs.id AS handoff_id, task_id, title AS task_title, from_agent_id,
	ifnull(to_agent_id, '') AS to_agent_id, summary, context, recommendations, state, handoffs.created_at AS created_at,
	ifnull(accepted_by, '') AS accepted_by, ifnull(accepted_at, '') AS accepted_at
	FROM handoffs JOIN tasks ON tasks.id = task_id `

// open reports whether the agent can accept the hand-off.
func (h *handoff) open(agentID string) bool {
	return h.State == pending && (h.ToAgentID == "" || h.ToAgentID == agentID)
}

func handoffByID(ctx context.Context, id string) (*handoff, error) {
	return one[handoff](ctx, handoffs, selectHandoff+"WHERE handoffs.id = ?", id)
}

// latestHandoff returns the newest hand-off of a task, whatever became of it.
func latestHandoff(ctx context.Context, taskID string) (*handoff, error) {
	list, err := pdksql.Select[handoff](ctx, selectHandoff+"WHERE task_id = ? ORDER BY handoffs.seq DESC LIMIT 1", taskID)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		return &list[0], nil
	}
	if err := tasks.check(ctx, taskID); err != nil {
		return nil, err
	}
	return nil, refuse("task %s has no hand-off yet: create_handoff makes one",
		"タスク %s にはまだハンドオフがありません。create_handoff で作成できます", taskID)
}

type newHandoff struct {
	TaskID          string `json:"task_id"`
	FromAgentID     string `json:"from_agent_id"`
	ToAgentID       string `json:"to_agent_id"`
	Summary         string `json:"summary"`
	Context         string `json:"context"`
	Recommendations string `json:"recommendations"`
}

type createdHandoff struct {
	handoff
	Replaces string `json:"replaces,omitempty"`
}

func createHandoff(ctx context.Context, in newHandoff) (*createdHandoff, error) {
	var out createdHandoff
	err := pdksql.Transaction(ctx, func(ctx context.Context) error {
		t, err := taskByID(ctx, in.TaskID)
		if err != nil {
			return err
		}
		if err := in.check(ctx, t); err != nil {
			return err
		}
		created, err := in.add(ctx)
		if err != nil {
			return err
		}
		out = createdHandoff{*created, t.PendingHandoffID}
		return nil
	})
	if err != nil {
		return nil, err
	}
	changed(ctx, "handoff://"+in.TaskID, "task://"+in.TaskID)
	return &out, nil
}

// check refuses a hand-off between agents that are not known, and of a task that is over.
func (in *newHandoff) check(ctx context.Context, t *task) error {
	if closed(t.Status) {
		return refuse("task %[1]s is %[2]s, so there is nothing to hand over: if work is left, call update_task_status(task_id=%[1]q, status=%[3]q) first",
			"タスク %[1]s は %[2]s なので引き継ぐ作業がありません。作業が残っている場合は、先に update_task_status(task_id=%[1]q, status=%[3]q) を呼び出してください",
			t.ID, t.Status, next[t.Status][0])
	}
	if err := agents.check(ctx, in.FromAgentID); err != nil {
		return err
	}
	return agents.check(ctx, in.ToAgentID)
}

// add stores the hand-off in place of the one that is pending.
func (in *newHandoff) add(ctx context.Context) (*handoff, error) {
	if _, err := pdksql.Exec(ctx, "UPDATE handoffs SET state = 'replaced' WHERE task_id = ? AND state = 'pending'", in.TaskID); err != nil {
		return nil, err
	}
	id, err := handoffs.add(ctx, "", `INSERT INTO handoffs
		(id, task_id, from_agent_id, to_agent_id, summary, context, recommendations, state, created_at)
		VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, 'pending', ?)`,
		in.TaskID, in.FromAgentID, in.ToAgentID, in.Summary, in.Context, in.Recommendations, now())
	if err != nil {
		return nil, err
	}
	return handoffByID(ctx, id)
}

type acceptArgs struct {
	HandoffID string `json:"handoff_id"`
	AgentID   string `json:"agent_id"`
}

type acceptance struct {
	Handoff *handoff    `json:"handoff"`
	Task    *taskDetail `json:"task"`
}

func acceptHandoff(ctx context.Context, in acceptArgs) (*acceptance, error) {
	var (
		h             *handoff
		before, after *task
	)
	err := pdksql.Transaction(ctx, func(ctx context.Context) (err error) {
		if err = agents.check(ctx, in.AgentID); err != nil {
			return err
		}
		if h, err = claim(ctx, in); err != nil {
			return err
		}
		before, after, err = changeTask(ctx, h.TaskID, 0, func(_ context.Context, t *task) error {
			t.AssigneeID = in.AgentID
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	changed(ctx, "handoff://"+h.TaskID)
	taskChanged(ctx, before, after)
	return &acceptance{h, after.detail()}, nil
}

// claim marks a hand-off as accepted. One statement decides, so of several agents at once one gets it.
func claim(ctx context.Context, in acceptArgs) (*handoff, error) {
	result, err := pdksql.Exec(ctx, `UPDATE handoffs SET state = 'accepted', accepted_by = ?1, accepted_at = ?2
		WHERE id = ?3 AND state = 'pending' AND (to_agent_id IS NULL OR to_agent_id = ?1)`, in.AgentID, now(), in.HandoffID)
	if err != nil {
		return nil, err
	}
	h, err := handoffByID(ctx, in.HandoffID)
	if err == nil && result.Changes == 0 {
		err = h.unavailable(ctx, in.AgentID)
	}
	return h, err
}

// unavailable says why an agent cannot accept the hand-off.
func (h *handoff) unavailable(ctx context.Context, agentID string) error {
	switch h.State {
	case accepted:
		return refuse("hand-off %[1]s was accepted by %[2]s at %[3]s and cannot be accepted again: see get_pending_handoffs(agent_id=%[4]q) for others",
			"ハンドオフ %[1]s は %[3]s に %[2]s が受領済みで、再度受領することはできません。ほかのハンドオフは get_pending_handoffs(agent_id=%[4]q) で確認してください",
			h.ID, h.AcceptedBy, h.AcceptedAt, agentID)
	case replaced:
		latest, err := latestHandoff(ctx, h.TaskID)
		if err != nil {
			return err
		}
		return refuse("hand-off %[1]s was replaced by %[2]s: look at that one, with get_pending_handoffs(agent_id=%[3]q)",
			"ハンドオフ %[1]s は %[2]s に置き換えられました。get_pending_handoffs(agent_id=%[3]q) でそちらを確認してください", h.ID, latest.ID, agentID)
	}
	return refuse("hand-off %[1]s is addressed to %[2]s, so %[3]s cannot accept it: see get_pending_handoffs(agent_id=%[3]q) for its own",
		"ハンドオフ %[1]s の宛先は %[2]s なので、%[3]s は受領できません。get_pending_handoffs(agent_id=%[3]q) で受領できるものを確認してください",
		h.ID, h.ToAgentID, agentID)
}

type handoffPage struct {
	Handoffs   []handoff `json:"handoffs"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

type handoffFilter struct {
	paging
	AgentID string `json:"agent_id"`
}

func getPendingHandoffs(ctx context.Context, in handoffFilter) (out handoffPage, err error) {
	out.Handoffs, out.NextCursor, err = page(ctx, handoffs, in.paging, 20, func(h *handoff) string { return h.ID },
		selectHandoff+"WHERE state = 'pending' AND "+handoffs.after()+
			" AND (?3 = '' OR to_agent_id IS NULL OR to_agent_id = ?3) ORDER BY handoffs.seq LIMIT ?2", in.AgentID)
	if err != nil || len(out.Handoffs) > 0 {
		return out, err
	}
	return out, agents.check(ctx, in.AgentID)
}
