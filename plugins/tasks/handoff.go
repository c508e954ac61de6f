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
	// Forced reports whether somebody other than the task's assignee handed it over. That needs the argument force,
	// because a hand-off says how far its agent has come. Agents are not authenticated: this prevents mistakes, not
	// malice.
	Forced     bool   `json:"forced,omitempty"`
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	CreatedAt  string `json:"created_at"`
	AcceptedBy string `json:"accepted_by,omitempty"`
	AcceptedAt string `json:"accepted_at,omitempty"`
	ClosedBy   string `json:"closed_by,omitempty"`
	ClosedAt   string `json:"closed_at,omitempty"`
}

// States of a hand-off. All but pending are final.
const (
	pending   = "pending"
	accepted  = "accepted"
	replaced  = "replaced"  // by a later one of the same task
	withdrawn = "withdrawn" // by the agent that made it
	declined  = "declined"  // by the agent that it was addressed to
	ended     = "closed"    // because of what became of the task, which is the reason
)

// Reasons for which hand-offs are closed.
const (
	taskDone       = "task_done"
	taskCancelled  = "task_cancelled"
	taskReassigned = "task_reassigned"
	taskUnassigned = "task_unassigned"
)

const handoffColumns = `handoffs.id AS handoff_id, task_id, title AS task_title, from_agent_id,
	ifnull(to_agent_id, '') AS to_agent_id, summary, context, recommendations, forced, state, reason, handoffs.created_at AS created_at,
	ifnull(accepted_by, '') AS accepted_by, ifnull(accepted_at, '') AS accepted_at,
	ifnull(closed_by, '') AS closed_by, ifnull(closed_at, '') AS closed_at`

const selectHandoff = "SELECT " + handoffColumns + " FROM handoffs JOIN tasks ON tasks.id = task_id "

// acceptable are the hand-offs that an agent, ?1 or any, can accept.
const acceptable = `handoffs JOIN tasks ON tasks.id = task_id
	WHERE state = 'pending' AND (?1 = '' OR from_agent_id <> ?1 AND (to_agent_id IS NULL OR to_agent_id = ?1))`

// open reports whether the agent can accept the hand-off.
func (h *handoff) open(agentID string) bool {
	return h.State == pending && h.FromAgentID != agentID && (h.ToAgentID == "" || h.ToAgentID == agentID)
}

// texts are texts by agents.
func (h *handoff) texts() []*string {
	return []*string{&h.Summary, &h.Context, &h.Recommendations, &h.Reason}
}

func handoffByID(ctx context.Context, id string) (*handoff, error) {
	return one[handoff](ctx, handoffs, selectHandoff+"WHERE handoffs.id = ?", id)
}

// latestHandoff returns the newest hand-off of a task, whatever became of it.
func latestHandoff(ctx context.Context, taskID string) (*handoff, error) {
	list, err := pdksql.Select[handoff](ctx, selectHandoff+"WHERE task_id = ? ORDER BY handoffs.seq DESC LIMIT 1",
		taskID)
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
	Force           bool   `json:"force"`
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
		created, err := in.add(ctx, in.foreign(t))
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

// foreign reports whether the task is assigned to another agent than the one that hands it over.
func (in *newHandoff) foreign(t *task) bool {
	return t.AssigneeID != "" && t.AssigneeID != in.FromAgentID
}

// check refuses a hand-off between agents that are not known, of a task that is finished or another's, and to the agent
// that has it.
func (in *newHandoff) check(ctx context.Context, t *task) error {
	if err := agents.check(ctx, in.FromAgentID); err != nil {
		return err
	}
	if err := agents.check(ctx, in.ToAgentID); err != nil {
		return err
	}
	switch {
	case closed(t.Status):
		return refuse("task %[1]s is %[2]s, so there is nothing to hand over: if work is left, call update_task_status(task_id=%[1]q, status=%[3]q) first",
			"タスク %[1]s は %[2]s なので引き継ぐ作業がありません。作業が残っている場合は、先に update_task_status(task_id=%[1]q, status=%[3]q) を呼び出してください",
			t.ID, t.Status, next[t.Status][0])
	case in.foreign(t) && !in.Force:
		return refuse("task %s is assigned to %s, so %s cannot hand it over: leave it to the assignee, or pass force=true, which is recorded",
			"タスク %s の担当は %s なので、%s は引き継ぎを作成できません。担当者に任せるか、force=true を指定してください（記録に残ります）",
			t.ID, t.AssigneeID, in.FromAgentID)
	case in.ToAgentID == in.FromAgentID:
		return refuse("agent %s cannot hand a task over to itself: name another agent (list_agents() shows them), or keep notes with save_context(task_id=%q)",
			"エージェント %s は自分自身に引き継ぐことはできません。別のエージェントを指定するか（list_agents() で確認できます）、save_context(task_id=%q) で状況を記録してください",
			in.FromAgentID, t.ID)
	case in.ToAgentID != "" && in.ToAgentID == t.AssigneeID:
		return refuse("task %s is assigned to %s already, so it cannot be handed over to that agent",
			"タスク %s の担当は既に %s なので、このエージェントへの引き継ぎはできません", t.ID, t.AssigneeID)
	}
	return nil
}

// add stores the hand-off in place of the one that is pending.
func (in *newHandoff) add(ctx context.Context, forced bool) (*handoff, error) {
	if _, err := pdksql.Exec(ctx, `UPDATE handoffs SET state = 'replaced', closed_by = ?2, closed_at = ?3
		WHERE task_id = ?1 AND state = 'pending'`, in.TaskID, in.FromAgentID, now()); err != nil {
		return nil, err
	}
	id, err := handoffs.add(ctx, "", `INSERT INTO handoffs
		(id, task_id, from_agent_id, to_agent_id, summary, context, recommendations, forced, state, reason, created_at)
		VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?, 'pending', '', ?)`,
		in.TaskID, in.FromAgentID, in.ToAgentID, in.Summary, in.Context, in.Recommendations, forced, now())
	if err != nil {
		return nil, err
	}
	return handoffByID(ctx, id)
}

// endHandoff closes the pending hand-off of a task that is finished now or has another assignee, in the transaction of
// ctx.
func endHandoff(ctx context.Context, before, after *task, e edit) error {
	var reason string
	switch {
	case before.PendingHandoffID == "":
		return nil
	case after.Status == done:
		reason = taskDone
	case after.Status == cancelled:
		reason = taskCancelled
	case before.AssigneeID == after.AssigneeID:
		return nil
	case after.AssigneeID == "":
		reason = taskUnassigned
	default:
		reason = taskReassigned
	}
	after.PendingHandoffID = ""
	_, err := pdksql.Exec(ctx,
		"UPDATE handoffs SET state = 'closed', reason = ?, closed_by = nullif(?, ''), closed_at = ? WHERE id = ?",
		reason, e.AgentID, after.UpdatedAt, before.PendingHandoffID)
	return err
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
		detail        *taskDetail
	)
	err := pdksql.Transaction(ctx, func(ctx context.Context) (err error) {
		if err = agents.check(ctx, in.AgentID); err != nil {
			return err
		}
		if h, err = claim(ctx, in); err != nil {
			return err
		}
		before, after, err = changeTask(ctx, h.TaskID, edit{AgentID: in.AgentID, Reason: h.ID},
			func(_ context.Context, t *task) error {
				t.AssigneeID = in.AgentID
				return nil
			})
		if err != nil {
			return err
		}
		detail, err = after.detail(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	changed(ctx, "handoff://"+h.TaskID)
	taskChanged(ctx, before, after)
	return &acceptance{h, detail}, nil
}

// claim marks a hand-off as accepted. One statement decides, so of several agents at once one gets it.
func claim(ctx context.Context, in acceptArgs) (*handoff, error) {
	result, err := pdksql.Exec(ctx, `UPDATE handoffs SET state = 'accepted', accepted_by = ?1, accepted_at = ?2
		WHERE id = ?3 AND state = 'pending' AND from_agent_id <> ?1 AND (to_agent_id IS NULL OR to_agent_id = ?1)`,
		in.AgentID, now(), in.HandoffID)
	if err != nil {
		return nil, err
	}
	h, err := handoffByID(ctx, in.HandoffID)
	if err != nil || result.Changes > 0 {
		return h, err
	}
	if err := h.final(ctx, in.AgentID); err != nil {
		return nil, err
	}
	if h.FromAgentID == in.AgentID {
		return nil, refuse(
			"hand-off %[1]s is %[2]s's own, so %[2]s cannot accept it: withdraw_handoff(handoff_id=%[1]q, agent_id=%[2]q) takes it back",
			"ハンドオフ %[1]s は %[2]s 自身が作成したものなので、%[2]s は受領できません。取り消すには withdraw_handoff(handoff_id=%[1]q, agent_id=%[2]q) を呼び出してください",
			h.ID, in.AgentID)
	}
	return nil, h.notAddressed(in.AgentID)
}

// notAddressed is the refusal of an agent that the hand-off is not for.
func (h *handoff) notAddressed(agentID string) error {
	return refuse(
		"hand-off %[1]s is addressed to %[2]s and not to %[3]s: see get_pending_handoffs(agent_id=%[3]q) for its own",
		"ハンドオフ %[1]s の宛先は %[2]s であり、%[3]s ではありません。%[3]s 宛てのものは get_pending_handoffs(agent_id=%[3]q) で確認してください",
		h.ID, h.ToAgentID, agentID)
}

// final refuses a hand-off that is no longer pending, and names its outcome.
func (h *handoff) final(ctx context.Context, agentID string) error {
	switch h.State {
	case pending:
		return nil
	case accepted:
		return refuse(
			"hand-off %[1]s was accepted by %[2]s at %[3]s: see get_pending_handoffs(agent_id=%[4]q) for others",
			"ハンドオフ %[1]s は %[3]s に %[2]s が受領済みです。ほかのハンドオフは get_pending_handoffs(agent_id=%[4]q) で確認してください",
			h.ID, h.AcceptedBy, h.AcceptedAt, agentID)
	case replaced:
		latest, err := latestHandoff(ctx, h.TaskID)
		if err != nil {
			return err
		}
		return refuse("hand-off %[1]s was replaced by a later one, and %[2]s is the latest: see get_pending_handoffs(agent_id=%[3]q)",
			"ハンドオフ %[1]s は後のものに置き換えられました（最新は %[2]s）。get_pending_handoffs(agent_id=%[3]q) で確認してください", h.ID, latest.ID,
			agentID)
	}
	return refuse("hand-off %[1]s ended at %[2]s (%[3]s: %[4]s): look at its task with get_task(task_id=%[5]q)",
		"ハンドオフ %[1]s は %[2]s に終了しました（%[3]s: %[4]s）。get_task(task_id=%[5]q) でタスクを確認してください",
		h.ID, h.ClosedAt, h.State, h.Reason, h.TaskID)
}

type closeArgs struct {
	acceptArgs
	Reason string `json:"reason"`
}

// withdrawHandoff takes a hand-off back: the task stays with its assignee.
func withdrawHandoff(ctx context.Context, in closeArgs) (*acceptance, error) {
	return in.close(ctx, withdrawn, func(h *handoff) error {
		if h.FromAgentID == in.AgentID {
			return nil
		}
		return refuse("hand-off %s was made by %s, so %s cannot withdraw it: decline_handoff is for the agent that it is addressed to",
			"ハンドオフ %s を作成したのは %s なので、%s は取り消せません。宛先のエージェントは decline_handoff で辞退できます",
			h.ID, h.FromAgentID, in.AgentID)
	})
}

// declineHandoff refuses a hand-off on behalf of the agent that it is addressed to: the task stays with its assignee.
func declineHandoff(ctx context.Context, in closeArgs) (*acceptance, error) {
	return in.close(ctx, declined, func(h *handoff) error {
		switch h.ToAgentID {
		case in.AgentID:
			return nil
		case "":
			return refuse("hand-off %s is addressed to nobody, so there is nothing to decline: leave it to others",
				"ハンドオフ %s には宛先がないため、辞退する必要はありません。そのままにしておいてください", h.ID)
		}
		return h.notAddressed(in.AgentID)
	})
}

// close ends a pending hand-off, unless allowed refuses it.
func (in *closeArgs) close(ctx context.Context, state string, allowed func(*handoff) error) (out *acceptance,
	err error) {
	err = pdksql.Transaction(ctx, func(ctx context.Context) error {
		out, err = in.end(ctx, state, allowed)
		return err
	})
	if err == nil {
		changed(ctx, "handoff://"+out.Task.ID, "task://"+out.Task.ID)
	}
	return out, err
}

func (in *closeArgs) end(ctx context.Context, state string, allowed func(*handoff) error) (*acceptance, error) {
	if err := agents.check(ctx, in.AgentID); err != nil {
		return nil, err
	}
	h, err := handoffByID(ctx, in.HandoffID)
	if err != nil {
		return nil, err
	}
	if err := h.final(ctx, in.AgentID); err != nil {
		return nil, err
	}
	if err := allowed(h); err != nil {
		return nil, err
	}
	h.State, h.Reason, h.ClosedBy, h.ClosedAt = state, in.Reason, in.AgentID, now()
	if _, err := pdksql.Exec(ctx,
		"UPDATE handoffs SET state = ?, reason = ?, closed_by = ?, closed_at = ? WHERE id = ?",
		h.State, h.Reason, h.ClosedBy, h.ClosedAt, h.ID); err != nil {
		return nil, err
	}
	t, err := taskDetailByID(ctx, h.TaskID)
	return &acceptance{h, t}, err
}

type handoffPage struct {
	extent
	Handoffs []handoff `json:"handoffs"`
}

type handoffFilter struct {
	paging
	AgentID string `json:"agent_id"`
}

// getPendingHandoffs lists hand-offs as far as their texts are within the budget.
func getPendingHandoffs(ctx context.Context, in handoffFilter) (out handoffPage, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) (err error) {
		out.Handoffs, out.extent, err = list[handoff](ctx, in.paging, handoffColumns, acceptable, "handoffs.seq",
			in.AgentID)
		if err != nil || out.TotalCount > 0 {
			return err
		}
		return agents.check(ctx, in.AgentID)
	})
	n := fit(newBudget(ctx, 0), out.Handoffs, (*handoff).texts)
	if n < len(out.Handoffs) {
		out.Handoffs = out.Handoffs[:n]
		out.end(in.paging, n)
		out.note(ctx, "%d hand-offs are here, because their texts are long: offset=%d shows the next",
			"本文が長いため %d 件だけを返します。続きは offset=%d で取得できます", n, in.Offset+n)
	}
	return out, err
}
