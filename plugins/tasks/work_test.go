package main

import (
	"reflect"
	"strings"
	"testing"
)

// TestContext holds that what is left out stays, an empty text clears, and the history keeps what was.
func TestContext(t *testing.T) {
	t.Parallel()
	office(t)
	if got := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true}); got.Records != 0 || got.SavedAt != "" || len(got.History) != 0 {
		t.Errorf("before: %+v", got)
	}
	for _, step := range []struct {
		save args
		want notes
	}{
		{args{"progress": "half", "blockers": "no design"}, notes{Progress: "half", Blockers: "no design"}},
		{args{"blockers": "", "findings": "it is slow"}, notes{Progress: "half", Findings: "it is slow"}},
		{args{"progress": "all", "next_steps": "test\nship"}, notes{Progress: "all", Findings: "it is slow", NextSteps: "test\nship"}},
	} {
		step.save["task_id"] = "task_ui"
		if got := result[savedContext](t, "save_context", step.save); got.Context != step.want {
			t.Errorf("after %v: %+v", step.save, got.Context)
		}
	}
	got := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true})
	var progress []string
	for _, r := range got.History {
		progress = append(progress, r.Progress)
	}
	if want := []string{"all", "", "half"}; got.Records != 3 || !reflect.DeepEqual(progress, want) || got.History[2].Blockers != "no design" {
		t.Errorf("history: %+v", got)
	}
	if plain := result[taskContext](t, "get_task_context", args{"task_id": "task_ui"}); plain.History != nil || plain.Handoffs != nil || plain.Context != got.Context {
		t.Errorf("without history: %+v", plain)
	}
}

func handOver(t *testing.T, to string) createdHandoff {
	t.Helper()
	in := args{"task_id": "task_ui", "from_agent_id": "agt_ann", "summary": "認証機能実装完了。UIテストが必要", "context": "branch login"}
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
	refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_ann"}, h.ID, "agt_bob", `get_pending_handoffs(agent_id="agt_ann")`)
	got := result[acceptance](t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob"})
	if got.Handoff.AcceptedBy != "agt_bob" || got.Handoff.AcceptedAt == "" || got.Handoff.State != accepted {
		t.Errorf("accepted: %+v", got.Handoff)
	}
	if got.Task.AssigneeID != "agt_bob" || got.Task.Status != inProgress || got.Task.PendingHandoffID != "" {
		t.Errorf("task: %+v", got.Task)
	}
	refused(t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_bob"}, h.ID, "agt_bob", got.Handoff.AcceptedAt)
	if got := pendingIDs(t, ""); got != "" {
		t.Errorf("still pending: %s", got)
	}
}

func TestHandoffToAnybody(t *testing.T) {
	t.Parallel()
	office(t)
	h := handOver(t, "")
	for _, agentID := range []string{"agt_ann", "agt_bob", ""} {
		if got := pendingIDs(t, agentID); got != h.ID {
			t.Errorf("pending for %q: %q, want %q", agentID, got, h.ID)
		}
	}
	// An agent may continue its own work in a later session.
	if got := result[acceptance](t, "accept_handoff", args{"handoff_id": h.ID, "agent_id": "agt_ann"}); got.Task.AssigneeID != "agt_ann" || got.Task.Version != 1 {
		t.Errorf("task: %+v", got.Task)
	}
}

func TestHandoffReplaced(t *testing.T) {
	t.Parallel()
	office(t)
	first := handOver(t, "agt_bob")
	second := handOver(t, "agt_ann")
	if second.Replaces != first.ID {
		t.Errorf("replaces %q, want %q", second.Replaces, first.ID)
	}
	refused(t, "accept_handoff", args{"handoff_id": first.ID, "agent_id": "agt_bob"}, first.ID, second.ID)
	if got := pendingIDs(t, ""); got != second.ID {
		t.Errorf("pending: %s, want %s", got, second.ID)
	}
	kept := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true}).Handoffs
	if len(kept) != 2 || kept[0].ID != second.ID || kept[1].State != replaced || kept[1].Summary == "" {
		t.Errorf("history: %+v", kept)
	}
}

// TestHandoffOfClosedTask holds that a task that is over is not handed over, and what to do if it is not.
func TestHandoffOfClosedTask(t *testing.T) {
	t.Parallel()
	office(t)
	in := args{"task_id": "task_ui", "from_agent_id": "agt_ann", "summary": "s"}
	result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": done})
	refused(t, "create_handoff", in, "task_ui", done, `status="in_progress"`)
	result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": inProgress})
	result[createdHandoff](t, "create_handoff", in)
}
