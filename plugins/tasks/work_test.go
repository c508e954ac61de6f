package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestContext checks that what is left out stays, an empty text clears and shows as cleared, and the history keeps what
// was.
func TestContext(t *testing.T) {
	t.Parallel()
	office(t)
	if got := result[taskContext](t, "get_task_context",
		args{"task_id": "task_ui", "include_history": true}); got.TotalCount != 0 || got.SavedAt != "" ||
		len(got.History) != 0 {
		t.Errorf("before: %+v", got)
	}
	for _, step := range []struct {
		save args
		want string
	}{
		{args{"progress": "half", "blockers": "no design"}, `{"progress":"half","blockers":"no design"}`},
		{args{"blockers": "", "findings": "it is slow"}, `{"progress":"half","findings":"it is slow","blockers":""}`},
		{args{"progress": "all", "next_steps": "test\nship\x00"},
			`{"progress":"all","findings":"it is slow","blockers":"","next_steps":"test\nship\u0000"}`},
	} {
		step.save["task_id"] = "task_ui"
		if got := asJSON(t, result[savedContext](t, "save_context", step.save).Context); got != step.want {
			t.Errorf("after %v: %s", step.save, got)
		}
	}
	got := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true})
	var history []string
	for _, e := range got.History {
		history = append(history, asJSON(t, e.Context.notes))
	}
	want := []string{`{"progress":"all","next_steps":"test\nship\u0000"}`, `{"findings":"it is slow","blockers":""}`,
		`{"progress":"half","blockers":"no design"}`}
	if got.TotalCount != 3 || !slices.Equal(history, want) {
		t.Errorf("history: %q", history)
	}
	if plain := result[taskContext](t, "get_task_context", args{"task_id": "task_ui"}); plain.History != nil ||
		plain.TotalCount != 3 || asJSON(t, plain.Context) != asJSON(t, got.Context) {
		t.Errorf("without history: %+v", plain)
	}
}

// TestWhoSaved: a record says who saved it, in the context, its history and prompts.
func TestWhoSaved(t *testing.T) {
	t.Parallel()
	office(t)
	if got := result[savedContext](t, "save_context",
		args{"task_id": "task_ui", "progress": "half", "agent_id": "agt_ann"}); got.AgentID != "agt_ann" {
		t.Errorf("saved by %q", got.AgentID)
	}
	result[savedContext](t, "save_context", args{"task_id": "task_ui", "findings": "slow"})
	got := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true})
	if got.SavedBy != "" || got.History[0].Context.AgentID != "" || got.History[1].Context.AgentID != "agt_ann" {
		t.Errorf("saved by %q: %s", got.SavedBy, asJSON(t, got.History))
	}
	result[savedContext](t, "save_context", args{"task_id": "task_ui", "findings": "fast", "agent_id": "agt_bob"})
	if got := result[taskContext](t, "get_task_context", args{"task_id": "task_ui"}); got.SavedBy != "agt_bob" {
		t.Errorf("saved by %q", got.SavedBy)
	}
	refused(t, "save_context", args{"task_id": "task_ui", "progress": "p", "agent_id": "agt_nobody"}, "agt_nobody",
		"list_agents")
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	must(t, err)
	return string(data)
}

func handOver(t *testing.T, to string) createdHandoff {
	t.Helper()
	in := args{"task_id": "task_ui", "from_agent_id": "agt_ann", "summary": "認証機能実装完了。UIテストが必要",
		"context": "branch login"}
	if to != "" {
		in["to_agent_id"] = to
	}
	return result[createdHandoff](t, "create_handoff", in)
}

func pendingIDs(t *testing.T, agentID string) string {
	t.Helper()
	in := args{}
	if agentID != "" {
		in["agent_id"] = agentID
	}
	var ids []string
	for _, h := range result[handoffPage](t, "get_pending_handoffs", in).Handoffs {
		ids = append(ids, h.ID)
	}
	return strings.Join(ids, " ")
}

func TestHandoffToAnAgent(t *testing.T) {
	t.Parallel()
	office(t)
	h := handOver(t, "agt_bob")
	if h.State != "pending" || h.TaskTitle != "ログイン画面" || h.ToAgentID != "agt_bob" || h.Replaces != "" {
		t.Errorf("created: %+v", h)
	}
	for agentID, want := range map[string]string{"agt_bob": h.ID, "agt_ann": "", "": h.ID} {
		if got := pendingIDs(t, agentID); got != want {
			t.Errorf("pending for %q: %q, want %q", agentID, got, want)
		}
	}
	if got := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}).PendingHandoffID; got != h.ID {
		t.Errorf("the task has the pending hand-off %q", got)
	}
	result[agent](t, "register_agent", args{"agent_id": "agt_eve", "name": "n"})
	refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_eve"}, h.ID, "agt_bob",
		`get_pending_handoffs(agent_id="agt_eve")`)
	got := result[acceptance](t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob"})
	if got.Handoff.AcceptedBy != "agt_bob" || got.Handoff.AcceptedAt == "" || got.Handoff.State != accepted {
		t.Errorf("accepted: %+v", got.Handoff)
	}
	if got.Task.AssigneeID != "agt_bob" || got.Task.Status != inProgress || got.Task.PendingHandoffID != "" {
		t.Errorf("task: %+v", got.Task)
	}
	refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob"}, h.ID, "agt_bob",
		got.Handoff.AcceptedAt)
	if got := pendingIDs(t, ""); got != "" {
		t.Errorf("still pending: %s", got)
	}
}

func TestHandoffToAnybody(t *testing.T) {
	t.Parallel()
	office(t)
	h := handOver(t, "")
	for agentID, want := range map[string]string{"agt_ann": "", "agt_bob": h.ID, "": h.ID} {
		if got := pendingIDs(t, agentID); got != want {
			t.Errorf("pending for %q: %q, want %q", agentID, got, want)
		}
	}
	refused(t, "decline_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob", "reason": "r"}, h.ID)
	refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_ann"}, h.ID, "agt_ann",
		"withdraw_handoff(handoff_id=")
	if got := result[acceptance](t, "accept_handoff",
		args{"handoff_id": h.ID, "agent_id": "agt_bob"}); got.Task.AssigneeID != "agt_bob" || got.Task.Version != 2 {
		t.Errorf("task: %+v", got.Task)
	}
}

func TestHandoffReplaced(t *testing.T) {
	t.Parallel()
	office(t)
	first := handOver(t, "agt_bob")
	second := handOver(t, "")
	if second.Replaces != first.ID {
		t.Errorf("replaces %q, want %q", second.Replaces, first.ID)
	}
	refused(t, "accept_handoff", args{"handoff_id": first.ID, "agent_id": "agt_bob"}, first.ID, second.ID)
	if got := pendingIDs(t, ""); got != second.ID {
		t.Errorf("pending: %s, want %s", got, second.ID)
	}
	kept := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true})
	if kept.PendingHandoff == nil || kept.PendingHandoff.ID != second.ID || len(kept.History) != 1 ||
		kept.History[0].Handoff.State != replaced || kept.History[0].Handoff.Summary == "" {
		t.Errorf("history: %+v", kept)
	}
}

// TestHandoffOfClosedTask checks that a task that is over is not handed over, and what to do if it is not.
func TestHandoffOfClosedTask(t *testing.T) {
	t.Parallel()
	office(t)
	in := args{"task_id": "task_ui", "from_agent_id": "agt_ann", "summary": "s"}
	result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": done})
	refused(t, "create_handoff", in, "task_ui", done, `status="in_progress"`)
	result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": inProgress})
	result[createdHandoff](t, "create_handoff", in)
}

// TestHandoffEnds checks that a hand-off ends with a reason where its task is finished, reassigned or unassigned, and by
// nothing else.
func TestHandoffEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tool   string
		in     args
		reason string
	}{
		{"update_task_status", args{"status": done, "agent_id": "agt_ann"}, taskDone},
		{"update_task_status", args{"status": cancelled, "agent_id": "agt_ann"}, taskCancelled},
		{"assign_task", args{"assignee_id": "agt_bob", "agent_id": "agt_ann"}, taskReassigned},
		{"unassign_task", args{"agent_id": "agt_ann"}, taskUnassigned},
		{"update_task_status", args{"status": review}, ""},
		{"update_task", args{"title": "t"}, ""},
		{"assign_task", args{"assignee_id": "agt_ann"}, ""},
	} {
		t.Run(test.tool+" "+test.reason, func(t *testing.T) {
			t.Parallel()
			office(t)
			h := handOver(t, "agt_bob")
			test.in["task_id"] = "task_ui"
			after := result[struct{ Task taskDetail }](t, test.tool, test.in).Task
			if test.reason == "" {
				if got := pendingIDs(t, "agt_bob"); got != h.ID || after.PendingHandoffID != h.ID {
					t.Errorf("pending: %q, in the task %q", got, after.PendingHandoffID)
				}
				return
			}
			if got := pendingIDs(t, ""); got != "" || after.PendingHandoffID != "" {
				t.Errorf("still pending: %q, in the task %q", got, after.PendingHandoffID)
			}
			for tool, in := range handoffEnds(h.ID) {
				refused(t, tool, in, h.ID, test.reason, `get_task(task_id="task_ui")`)
			}
			history := result[taskContext](t, "get_task_context",
				args{"task_id": "task_ui", "include_history": true}).History
			if kept := history[len(history)-1].Handoff; kept == nil || kept.State != ended ||
				kept.Reason != test.reason || kept.ClosedBy != "agt_ann" || kept.ClosedAt == "" {
				t.Errorf("history: %+v", kept)
			}
		})
	}
}

// handoffEnds are the calls with which agt_bob could end a hand-off.
func handoffEnds(id string) map[string]args {
	return map[string]args{
		"accept_handoff":   {"handoff_id": id, "agent_id": "agt_bob"},
		"withdraw_handoff": {"handoff_id": id, "agent_id": "agt_bob"},
		"decline_handoff":  {"handoff_id": id, "agent_id": "agt_bob", "reason": "r"},
	}
}

// TestHandoffRules holds who may hand a task over to whom, and that force is recorded where it was needed.
func TestHandoffRules(t *testing.T) {
	t.Parallel()
	office(t)
	create := func(from, to string, force bool) args {
		in := args{"task_id": "task_ui", "from_agent_id": from, "summary": "s", "force": force}
		if to != "" {
			in["to_agent_id"] = to
		}
		return in
	}
	result[agent](t, "register_agent", args{"agent_id": "agt_eve", "name": "n"})
	refused(t, "create_handoff", create("agt_ann", "agt_ann", false), "agt_ann", "list_agents")
	refused(t, "create_handoff", create("agt_ann", "agt_ann", true), "agt_ann", "list_agents")
	refused(t, "create_handoff", create("agt_bob", "agt_eve", false), "task_ui", "agt_ann", "agt_bob", "force=true")
	refused(t, "create_handoff", create("agt_bob", "agt_ann", true), "task_ui", "agt_ann")
	if own := result[createdHandoff](t, "create_handoff", create("agt_ann", "agt_eve", true)); own.Forced {
		t.Error("a hand-off by the assignee is forced")
	}
	forced := result[createdHandoff](t, "create_handoff", create("agt_bob", "agt_eve", true))
	if !forced.Forced {
		t.Error("the force is not recorded")
	}
	text := getPrompt(t, "en", "context_summary", map[string]string{"task_id": "task_ui"}).Messages[0].Content.Text
	if !strings.Contains(text, "was not assigned to agt_bob (force)") {
		t.Errorf("the prompt hides the force:\n%s", text)
	}
	result[acceptance](t, "accept_handoff", args{"handoff_id": forced.ID, "agent_id": "agt_eve"})
	result[taskUpdate](t, "unassign_task", args{"task_id": "task_ui"})
	if free := result[createdHandoff](t, "create_handoff", create("agt_bob", "", false)); free.Forced {
		t.Error("handing over what nobody has is forced")
	}
}

// TestHandoffTakenBack checks that an agent can withdraw its own hand-off and decline one that is addressed to it, and
// nobody else can.
func TestHandoffTakenBack(t *testing.T) {
	t.Parallel()
	office(t)
	for _, test := range []struct{ tool, agent, other, state, hint string }{
		{"withdraw_handoff", "agt_ann", "agt_bob", withdrawn, "decline_handoff"},
		{"decline_handoff", "agt_bob", "agt_ann", declined, "get_pending_handoffs"},
	} {
		h := handOver(t, "agt_bob")
		in := args{"handoff_id": h.ID, "reason": "too early"}
		in["agent_id"] = test.other
		refused(t, test.tool, in, h.ID, test.other, test.hint)
		in["agent_id"] = test.agent
		got := result[acceptance](t, test.tool, in)
		if got.Handoff.State != test.state || got.Handoff.Reason != "too early" || got.Handoff.ClosedBy != test.agent ||
			got.Task.AssigneeID != "agt_ann" || got.Task.PendingHandoffID != "" || got.Task.Version != 1 {
			t.Errorf("%s: %+v, %+v", test.tool, got.Handoff, got.Task)
		}
		refused(t, test.tool, in, h.ID, test.state, "too early")
		refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob"}, h.ID, test.state, "too early")
	}
}
