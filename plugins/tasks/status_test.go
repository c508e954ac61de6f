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
			created := result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": id, "task_id": id})
			for _, status := range way(t, created.Status, marks[0]) {
				result[statusChange](t, "update_task_status", args{"task_id": id, "status": status})
			}
			before := result[taskDetail](t, "get_task", args{"task_id": id})
			update := args{"task_id": id, "status": to}
			switch mark := marks[i+1]; mark {
			case "-":
				refused(t, "update_task_status", update, id, marks[0], strings.Join(before.NextStatuses, ", "))
				if after := result[taskDetail](t, "get_task", args{"task_id": id}); after.Version != before.Version || after.Status != before.Status {
					t.Errorf("refused, but %+v became %+v", before.task, after.task)
				}
			default:
				got := result[statusChange](t, "update_task_status", update)
				if got.Changed != (mark == "x") || got.PreviousStatus != marks[0] || got.Task.Status != to || (got.Task.Version == before.Version+1) != got.Changed {
					t.Errorf("%s to %s: %+v, %+v", marks[0], to, got, got.Task.task)
				}
				if slices.Contains(before.NextStatuses, to) != got.Changed {
					t.Errorf("get_task offers %v, and %s changes to %s: %v", before.NextStatuses, marks[0], to, got.Changed)
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

// TestDetour holds that a refused change names the call that makes it possible.
func TestDetour(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": "x", "task_id": "task_x"})
	refused(t, "update_task_status", args{"task_id": "task_x", "status": done}, `update_task_status(task_id="task_x", status="in_progress")`)
}

// TestVersion holds that a decision made on an old state is not carried out.
func TestVersion(t *testing.T) {
	t.Parallel()
	office(t)
	seen := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}).Version
	moved := result[statusChange](t, "update_task_status", args{"task_id": "task_ui", "status": review, "version": seen})
	if moved.Task.Version != seen+1 {
		t.Fatalf("version %d after %d", moved.Task.Version, seen)
	}
	refused(t, "update_task_status", args{"task_id": "task_ui", "status": done, "version": seen}, "task_ui", `get_task(task_id="task_ui")`)
	refused(t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_bob", "version": seen}, "task_ui", `get_task(task_id="task_ui")`)
	if now := result[taskDetail](t, "get_task", args{"task_id": "task_ui"}); now.Status != review || now.AssigneeID != "agt_ann" || now.Version != seen+1 {
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
	refused(t, "assign_task", args{"task_id": "task_ui", "assignee_id": "agt_nobody"}, "agt_nobody", "list_agents()")
	if a := result[agent](t, "get_agent_profile", args{"agent_id": "agt_bob"}); a.OpenTasks != 1 {
		t.Errorf("agt_bob has %d open tasks", a.OpenTasks)
	}
}
