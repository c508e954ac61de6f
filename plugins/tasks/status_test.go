package main

import (
	"slices"
	"strings"
	"testing"
)

// transitions is the whole table: a mark says that the status of the line may change to that of the column.
const transitions = `
             backlog todo in_progress blocked review done cancelled
backlog         =     x       x          -      -     -       x
todo            x     =       x          x      -     -       x
in_progress     -     x       =          x      x     x       x
blocked         -     x       x          =      -     -       x
review          -     -       x          x      =     x       x
done            -     -       x          -      x     =       -
cancelled       x     x       -          -      -     -       =
`

// TestTransitions tries every change of status, and holds that what is refused changes nothing.
func TestTransitions(t *testing.T) {
	t.Parallel()
	office(t)
	lines := strings.Split(strings.TrimSpace(transitions), "\n")
	columns := strings.Fields(lines[0])
	for _, line := range lines[1:] {
		marks := strings.Fields(line)
		for i, to := range columns {
			id := "task_" + marks[0] + "_" + to
			created := result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": id,
				"task_id": id})
			for _, status := range way(t, created.Status, marks[0]) {
				result[statusChange](t, "update_task_status", args{"task_id": id, "status": status})
			}
			before := result[taskDetail](t, "get_task", args{"task_id": id})
			update := args{"task_id": id, "status": to}
			switch mark := marks[i+1]; mark {
			case "-":
				refused(t, "update_task_status", update, id, marks[0], strings.Join(before.NextStatuses, ", "))
				if after := result[taskDetail](t, "get_task", args{"task_id": id}); after.Version != before.Version ||
					after.Status != before.Status {
					t.Errorf("refused, but %+v became %+v", before.task, after.task)
				}
			default:
				got := result[statusChange](t, "update_task_status", update)
				if got.Changed != (mark == "x") || got.PreviousStatus != marks[0] || got.Task.Status != to ||
					(got.Task.Version == before.Version+1) != got.Changed {
					t.Errorf("%s to %s: %+v, %+v", marks[0], to, got, got.Task.task)
				}
				if slices.Contains(before.NextStatuses, to) != got.Changed {
					t.Errorf("get_task offers %v, and %s changes to %s: %v", before.NextStatuses, marks[0], to,
						got.Changed)
				}
			}
		}
	}
}

// way returns the statuses that lead from one to another, the shortest way.
func way(t *testing.T, from, to string) []string {
	t.Helper()
	type step struct {
		status string
		way    []string
	}
	for queue := []step{{from, nil}}; len(queue) > 0 && len(queue) < 1000; queue = queue[1:] {
		if queue[0].status == to {
			return queue[0].way
		}
		for _, via := range next[queue[0].status] {
			queue = append(queue, step{via, append(slices.Clone(queue[0].way), via)})
		}
	}
	t.Fatalf("%s is not reached from %s", to, from)
	return nil
}

// TestDetour checks that a refused change names the call that makes it possible.
func TestDetour(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": "x", "task_id": "task_x"})
	refused(t, "update_task_status", args{"task_id": "task_x", "status": done},
		`update_task_status(task_id="task_x", status="in_progress")`)
}

// TestVersion checks that a decision made on an old state is not carried out.
func TestVersion(t *testing.T) {
	t.Parallel()
	office(t)
	seen := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}).Version
	moved := result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": review,
		"version": seen})
	if moved.Task.Version != seen+1 {
		t.Fatalf("version %d after %d", moved.Task.Version, seen)
	}
	refused(t, "update_task_status", args{"task_id": "task_ui", "status": done, "version": seen}, "task_ui",
		`get_task(task_id="task_ui")`)
	refused(t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_bob", "version": seen}, "task_ui",
		`get_task(task_id="task_ui")`)
	if now := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}); now.Status != review ||
		now.AssigneeID != "agt_ann" || now.Version != seen+1 {
		t.Errorf("the task is %+v", now.task)
	}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	office(t)
	got := result[assignment](t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_bob"})
	if !got.Changed || got.PreviousAssigneeID != "agt_ann" || got.Task.AssigneeID != "agt_bob" {
		t.Errorf("assigned: %+v, %+v", got, got.Task.task)
	}
	again := result[assignment](t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_bob"})
	if again.Changed || again.Task.Version != got.Task.Version {
		t.Errorf("assigned twice: %+v, %+v", again, again.Task.task)
	}
	refused(t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_nobody"}, "agt_nobody", "list_agents")
	if a := result[agent](t, "get_agent_profile", args{"agent_id": "agt_bob"}); a.OpenTasks != 1 {
		t.Errorf("agt_bob has %d open tasks", a.OpenTasks)
	}
}

// TestWhoChanged checks that the history says who changed what, when and why.
func TestWhoChanged(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": "API", "task_id": "task_api"})
	for _, step := range []struct {
		tool string
		in   args
	}{
		{"update_task_status", args{"status": blocked, "agent_id": "agt_ann", "reason": "no design"}},
		{"update_task_status", args{"status": inProgress}},
		{"update_task", args{"title": "Sign-in", "priority": high, "description": "D", "agent_id": "agt_bob"}},
		{"update_task", args{"title": "Sign-in", "agent_id": "agt_bob"}},
		{"update_task", args{"blocked_by": []string{"task_api"}}},
		{"assign_task", args{"assignee_id": "agt_bob", "agent_id": "agt_ann"}},
		{"unassign_task", args{"agent_id": "agt_bob", "reason": "on leave"}},
	} {
		step.in["task_id"] = "task_ui"
		call(t, "en", step.tool, step.in)
	}
	var got []string
	history := result[taskContext](t, "get_task_context", args{"task_id": "task_ui", "include_history": true})
	for _, e := range slices.Backward(history.History) {
		if e.At == "" || e.Change == nil {
			t.Fatalf("entry %+v", e)
		}
		got = append(got,
			strings.Join([]string{e.Change.Field, e.Change.Before, e.Change.After, e.Change.AgentID, e.Change.Reason},
				"|"))
	}
	want := []string{
		"status|in_progress|blocked|agt_ann|no design", "status|blocked|in_progress||", "title|ログイン画面|Sign-in|agt_bob|",
		"description|UIを実装する||agt_bob|", "priority|medium|high|agt_bob|", "blocked_by||task_api||",
		"assignee|agt_ann|agt_bob|agt_ann|", "assignee|agt_bob||agt_bob|on leave",
	}
	if !slices.Equal(got, want) {
		t.Errorf("history:\n%s", strings.Join(got, "\n"))
	}
	if now := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}); now.Version != 7 ||
		now.Title != "Sign-in" || now.Description != "D" || now.AssigneeID != "" {
		t.Errorf("the task is %+v", now)
	}
	refused(t, "update_task_status", args{"task_id": "task_ui", "status": done, "agent_id": "agt_x"}, `"agt_x"`,
		"list_agents")
	refused(t, "update_task", args{"task_id": "task_ui"}, "title", "blocked_by")
}

// TestDependencies checks that a task waits for what it is blocked by until that is finished, and that no tasks wait for
// each other.
func TestDependencies(t *testing.T) {
	t.Parallel()
	office(t)
	create := func(id string, blockedBy ...string) taskDetail {
		return result[taskDetail](t, "create_task",
			args{"project_id": "proj_login", "title": id, "task_id": id,
				"blocked_by": append([]string{}, blockedBy...)})
	}
	create("task_a")
	create("task_b", "task_a")
	c := create("task_c", "task_b", "task_a", "task_b")
	if got := strings.Join(c.BlockedBy.ids(), " "); got != "task_a task_b" || c.OpenBlockers != 2 ||
		len(c.WaitsFor) != 2 || c.WaitsFor[0].ID != "task_a" || c.WaitsFor[0].Status != todo {
		t.Errorf("created: %+v", c)
	}
	refused(t, "update_task", args{"task_id": "task_a", "blocked_by": []string{"task_c"}}, "task_a", "task_c",
		`get_task(task_id="task_c")`)
	refused(t, "update_task", args{"task_id": "task_a", "blocked_by": []string{"task_a"}}, "task_a")
	refused(t, "create_task", args{"project_id": "proj_login", "title": "t", "blocked_by": []string{"task_x"}},
		`"task_x"`, "list_tasks")
	if got := result[taskDetail](t, "get_task", args{"task_id": "task_a"}); got.Version != 1 || got.BlockedBy != "" {
		t.Errorf("refused, but: %+v", got)
	}
	result[statusChange](t, "update_task_status", args{"task_id": "task_a", "status": cancelled})
	if got := result[taskDetail](t, "get_task", args{"task_id": "task_c"}); got.OpenBlockers != 1 ||
		len(got.WaitsFor) != 1 || len(got.BlockedBy.ids()) != 2 {
		t.Errorf("after one is cancelled: %+v", got)
	}
	if got := result[taskUpdate](t, "update_task", args{"task_id": "task_c", "blocked_by": []string{}}); !got.Changed ||
		got.Task.BlockedBy != "" || got.Task.OpenBlockers != 0 {
		t.Errorf("cleared: %+v", got)
	}
	result[statusChange](t, "update_task_status", args{"task_id": "task_a", "status": todo})
	for _, listed := range result[taskPage](t, "list_tasks", args{}).Tasks {
		if want := map[string]int{"task_b": 1}[listed.ID]; listed.OpenBlockers != want ||
			len(listed.BlockedBy.ids()) != want {
			t.Errorf("%s has %d open blockers in the list", listed.ID, listed.OpenBlockers)
		}
	}
}

// TestNextTask holds the order in which an agent is given work, and that what waits is passed over.
func TestNextTask(t *testing.T) {
	t.Parallel()
	office(t)
	result[project](t, "create_project", args{"project_id": "proj_other", "name": "n"})
	for _, in := range []args{
		{"task_id": "task_backlog", "status": backlog, "priority": high},
		{"task_id": "task_free", "priority": medium},
		{"task_id": "task_urgent", "priority": high},
		{"task_id": "task_mine", "priority": low, "assignee_id": "agt_bob"},
		{"task_id": "task_waits", "priority": high, "assignee_id": "agt_bob", "blocked_by": []string{"task_ui"}},
		{"task_id": "task_begun", "priority": low, "status": inProgress, "assignee_id": "agt_bob"},
	} {
		in["project_id"], in["title"] = "proj_login", "t"
		result[taskDetail](t, "create_task", in)
	}
	for _, want := range []string{"task_begun", "task_mine", "task_urgent", "task_free"} {
		got := result[nextTask](t, "next_task", args{"agent_id": "agt_bob"})
		if got.Task == nil || got.Task.ID != want || got.WaitingTasks != 1 {
			t.Fatalf("next is %+v, want %s", got.Task, want)
		}
		if claim := strings.Contains(strings.Join(got.Notes, " "),
			`assign_task(task_id="`+want+
				`", assignee_id="agt_bob", agent_id="agt_bob", version=1)`); claim != (got.Task.AssigneeID == "") {
			t.Errorf("%s: notes %q", want, got.Notes)
		}
		result[statusChange](t, "update_task_status", args{"task_id": want, "status": blocked})
		if got.Task.Status == todo && got.Task.AssigneeID != "" &&
			!strings.Contains(strings.Join(got.Notes, " "), `status="in_progress"`) {
			t.Errorf("%s: notes %q", want, got.Notes)
		}
	}
	if got := result[nextTask](t, "next_task", args{"agent_id": "agt_bob"}); got.Task != nil || got.WaitingTasks != 1 ||
		len(got.Notes) != 1 {
		t.Errorf("with nothing but a task that waits: %+v", got)
	}
	handOver(t, "agt_bob")
	if got := result[nextTask](t, "next_task", args{"agent_id": "agt_bob"}); got.PendingHandoffs != 1 ||
		!strings.Contains(got.Notes[0], "get_pending_handoffs") {
		t.Errorf("with a hand-off: %+v", got)
	}
	if got := result[nextTask](t, "next_task", args{"agent_id": "agt_ann"}); got.Task != nil ||
		got.PendingHandoffs != 0 {
		t.Errorf("what was handed over is next: %+v", got.Task)
	}
	result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": done})
	if got := result[nextTask](t, "next_task", args{"agent_id": "agt_bob"}); got.Task == nil ||
		got.Task.ID != "task_waits" || got.WaitingTasks != 0 {
		t.Errorf("after the blocker is done: %+v", got)
	}
	if got := result[nextTask](t, "next_task",
		args{"agent_id": "agt_bob", "project_id": "proj_other"}); got.Task != nil {
		t.Errorf("in another project: %+v", got.Task)
	}
}

// TestDelete checks that a deleted task is gone with all that belonged to it, and that who asks for it or its hand-offs
// is told why.
func TestDelete(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task",
		args{"project_id": "proj_login", "title": "API", "task_id": "task_api", "blocked_by": []string{"task_ui"}})
	result[savedContext](t, "save_context", args{"task_id": "task_ui", "progress": "p"})
	h := handOver(t, "agt_bob")
	in := args{"task_id": "task_ui", "reason": "a duplicate of task_api", "agent_id": "agt_ann"}
	refused(t, "delete_task", in, "task_ui", "task_api", "update_task")
	result[taskUpdate](t, "update_task", args{"task_id": "task_api", "blocked_by": []string{}})
	refused(t, "delete_task", args{"task_id": "task_ui", "reason": "r", "version": 7}, "task_ui", "get_task")
	got := result[deletedTask](t, "delete_task", in)
	if got.Title != "ログイン画面" || got.DeletedBy != "agt_ann" || got.DeletedAt == "" {
		t.Errorf("deleted: %+v", got)
	}
	told := []string{"task_ui", "ログイン画面", "agt_ann", "a duplicate of task_api"}
	for tool, in := range map[string]args{
		"get_task": {}, "get_task_context": {}, "delete_task": {"reason": "r"}, "save_context": {"progress": "p"},
		"create_task":    {"project_id": "proj_login", "title": "t"},
		"create_handoff": {"from_agent_id": "agt_ann", "summary": "s"},
	} {
		in["task_id"] = "task_ui"
		refused(t, tool, in, told...)
	}
	for tool, in := range handoffEnds(h.ID) {
		refused(t, tool, in, append(told, h.ID)...)
	}
	if failed := getPrompt(t, "en", "task_start",
		map[string]string{"task_id": "task_ui", "agent_id": "agt_ann"}).Error; failed == nil ||
		!strings.Contains(failed.Message, told[3]) {
		t.Errorf("the prompt of a deleted task: %v", failed)
	}
	if got := pendingIDs(t, ""); got != "" {
		t.Errorf("pending: %s", got)
	}
	if list := result[taskPage](t, "list_tasks", args{}); list.TotalCount != 1 {
		t.Errorf("left: %+v", list.Tasks)
	}
}
