package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// TestMisuse holds that every mistake gets an error that names what was wrong and the call that helps.
func TestMisuse(t *testing.T) {
	t.Parallel()
	office(t)
	for _, test := range []struct {
		tool  string
		in    args
		words []string
	}{
		{"get_agent_profile", args{"agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents()"}},
		{"get_agent_profile", args{"agent_id": "task_ui"}, []string{`"task_ui"`, "agt_", "list_agents()"}},
		{"get_project", args{"project_id": "proj_x"}, []string{`"proj_x"`, "list_projects()"}},
		{"get_task", args{"task_id": "task_x"}, []string{`"task_x"`, "list_tasks(project_id="}},
		{"get_task", args{"task_id": "' OR 1=1 --"}, []string{"' OR 1=1 --", "list_tasks"}},
		{"list_tasks", args{"project_id": "proj_x"}, []string{`"proj_x"`, "list_projects()"}},
		{"list_tasks", args{"assignee_id": "agt_x"}, []string{`"agt_x"`, "list_agents()"}},
		{"create_task", args{"project_id": "proj_x", "title": "t"}, []string{`"proj_x"`, "list_projects()"}},
		{"create_task", args{"project_id": "proj_login", "title": "t", "assignee_id": "agt_x"}, []string{`"agt_x"`, "list_agents()"}},
		{"create_task", args{"project_id": "proj_login", "title": "t", "task_id": "task_ui"}, []string{"task_ui"}},
		{"register_agent", args{"name": "n", "agent_id": "agt_ann"}, []string{"agt_ann"}},
		{"create_project", args{"name": "n", "project_id": "proj_login"}, []string{"proj_login"}},
		{"update_task_status", args{"task_id": "task_x", "status": done}, []string{`"task_x"`, "list_tasks"}},
		{"assign_task", args{"task_id": "task_x", "assignee_id": "agt_ann"}, []string{`"task_x"`, "list_tasks"}},
		{"save_context", args{"task_id": "task_x", "progress": "p"}, []string{`"task_x"`, "list_tasks"}},
		{"save_context", args{"task_id": "task_ui"}, []string{"progress", "next_steps"}},
		{"get_task_context", args{"task_id": "task_x"}, []string{`"task_x"`, "list_tasks"}},
		{"create_handoff", args{"task_id": "task_x", "from_agent_id": "agt_ann", "summary": "s"}, []string{`"task_x"`, "list_tasks"}},
		{"create_handoff", args{"task_id": "task_ui", "from_agent_id": "agt_x", "summary": "s"}, []string{`"agt_x"`, "list_agents()"}},
		{"create_handoff", args{"task_id": "task_ui", "from_agent_id": "agt_ann", "to_agent_id": "agt_y", "summary": "s"}, []string{`"agt_y"`, "list_agents()"}},
		{"accept_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_ann"}, []string{`"hnd_x"`, "get_pending_handoffs()"}},
		{"accept_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents()"}},
		{"get_pending_handoffs", args{"agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents()"}},
		{"list_agents", args{"cursor": "agt_x"}, []string{"agt_x", "next_cursor"}},
		{"list_projects", args{"cursor": "7"}, []string{`"7"`, "next_cursor"}},
		{"list_tasks", args{"cursor": "proj_login"}, []string{"proj_login", "next_cursor"}},
		{"get_pending_handoffs", args{"cursor": "x"}, []string{`"x"`, "next_cursor"}},
		{"get_task_context", args{"task_id": "task_ui", "include_history": true, "cursor": "x"}, []string{`"x"`, "next_cursor"}},
	} {
		t.Run(fmt.Sprint(test.tool, test.in), func(t *testing.T) { refused(t, test.tool, test.in, test.words...) })
	}
}

// TestSchemasRefuse holds what the host refuses before the plugin runs.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("あ", 4001)
	for tool, bad := range map[string][]string{
		"register_agent":       {`{}`, `{"name":" "}`, `{"name":"a\nb"}`, `{"name":"n","agent_id":"task_a"}`, `{"name":"n","agent_id":"agt_"}`, `{"name":"n","agent_id":"agt_a b"}`, `{"name":"` + long[:603] + `"}`},
		"create_task":          {`{"title":"t"}`, `{"project_id":"p","title":"t","status":"done"}`, `{"project_id":"p","title":""}`},
		"update_task_status":   {`{"task_id":"t"}`, `{"task_id":"t","status":"finished"}`, `{"task_id":"t","status":"done","version":0}`, `{"task_id":"","status":"done"}`, `{"task_id":7,"status":"done"}`},
		"save_context":         {`{"progress":"p"}`, `{"task_id":"t","progress":"` + long + `"}`, `{"task_id":"t","nextSteps":"n"}`},
		"create_handoff":       {`{"task_id":"t","from_agent_id":"a"}`, `{"task_id":"t","from_agent_id":"a","summary":"\n"}`, `{"task_id":"t","from_agent_id":"a","summary":"` + long + `"}`},
		"list_tasks":           {`{"limit":0}`, `{"limit":201}`, `{"status":"open"}`},
		"get_task_context":     {`{"task_id":"t","limit":21}`},
		"get_pending_handoffs": {`{"limit":51}`},
	} {
		i := slices.IndexFunc(shipped.Tools, func(x manifest.Tool) bool { return x.Name == tool })
		for _, arguments := range bad {
			if err := shipped.Tools[i].Input().Validate([]byte(arguments)); err == nil {
				t.Errorf("%s takes %.80s", tool, arguments)
			}
		}
	}
}

// TestIDs holds that new ids have the prefix of their kind, are drawn again when taken, and that drawing ends.
func TestIDs(t *testing.T) {
	office(t)
	draws := []string{"aaaaaaaaaa", "aaaaaaaaaa", "bbbbbbbbbb"}
	real := random
	t.Cleanup(func() { random = real })
	random = func() string {
		draw := draws[0]
		if len(draws) > 1 {
			draws = draws[1:]
		}
		return draw
	}
	create := func() taskDetail {
		return result[taskDetail](t, "create_task", args{"project_id": "proj_login", "title": "t"})
	}
	if first, second := create().ID, create().ID; first != "task_aaaaaaaaaa" || second != "task_bbbbbbbbbb" {
		t.Errorf("ids %s and %s", first, second)
	}
	if response := call(t, "en", "create_task", args{"project_id": "proj_login", "title": "t"}); !response.IsError {
		t.Error("a taken id is used again")
	}
	random = real
	for tool, in := range map[string]args{"register_agent": {"name": "n"}, "create_project": {"name": "n"}} {
		if response := call(t, "en", tool, in); response.IsError || !strings.Contains(string(response.StructuredContent), map[string]string{
			"register_agent": `"agent_id":"agt_`, "create_project": `"project_id":"proj_`}[tool]) {
			t.Errorf("%s: %s", tool, response.StructuredContent)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	office(t)
	created := result[taskDetail](t, "get_task", args{"task_id": "task_ui"})
	at, err := time.Parse(time.RFC3339, created.CreatedAt)
	if err != nil || at.Location() != time.UTC || time.Since(at) > time.Minute || created.UpdatedAt != created.CreatedAt {
		t.Errorf("created at %s, updated at %s: %v", created.CreatedAt, created.UpdatedAt, err)
	}
}

// TestPages reads every list in pages of two, and holds that each entry comes once, in order.
func TestPages(t *testing.T) {
	t.Parallel()
	office(t)
	for i := range 5 {
		n := fmt.Sprint(i)
		result[agent](t, "register_agent", args{"agent_id": "agt_" + n, "name": n})
		result[project](t, "create_project", args{"project_id": "proj_" + n, "name": n})
		result[taskDetail](t, "create_task", args{"project_id": "proj_" + n, "task_id": "task_" + n, "title": n})
		result[createdHandoff](t, "create_handoff", args{"task_id": "task_" + n, "from_agent_id": "agt_" + n, "summary": n})
		result[savedContext](t, "save_context", args{"task_id": "task_ui", "progress": n})
	}
	ids := func(list []any, key string) (got []string) {
		for _, item := range list {
			got = append(got, fmt.Sprint(item.(map[string]any)[key]))
		}
		return got
	}
	for _, test := range []struct{ tool, key, field, want string }{
		{"list_agents", "agents", "agent_id", "agt_ann agt_bob agt_0 agt_1 agt_2 agt_3 agt_4"},
		{"list_projects", "projects", "project_id", "proj_login proj_0 proj_1 proj_2 proj_3 proj_4"},
		{"list_tasks", "tasks", "task_id", "task_ui task_0 task_1 task_2 task_3 task_4"},
		{"get_pending_handoffs", "handoffs", "task_id", "task_0 task_1 task_2 task_3 task_4"},
		{"get_task_context", "history", "progress", "4 3 2 1 0"},
	} {
		var got []string
		in := args{"limit": 2}
		if test.tool == "get_task_context" {
			in["task_id"], in["include_history"] = "task_ui", true
		}
		for more := true; more; {
			page := result[map[string]any](t, test.tool, in)
			list, _ := page[test.key].([]any)
			if len(list) > 2 {
				t.Fatalf("%s: a page of %d", test.tool, len(list))
			}
			got = append(got, ids(list, test.field)...)
			in["cursor"], more = page["next_cursor"], page["next_cursor"] != nil
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.tool, got, test.want)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task", args{"project_id": "proj_login", "task_id": "task_api", "title": "API", "status": backlog})
	result[project](t, "create_project", args{"project_id": "proj_empty", "name": "Empty"})
	for _, test := range []struct {
		in   args
		want string
	}{
		{args{}, "task_ui task_api"},
		{args{"project_id": "proj_login"}, "task_ui task_api"},
		{args{"project_id": "proj_empty"}, ""},
		{args{"status": backlog}, "task_api"},
		{args{"assignee_id": "agt_ann"}, "task_ui"},
		{args{"assignee_id": "agt_bob"}, ""},
		{args{"project_id": "proj_login", "status": inProgress, "assignee_id": "agt_ann"}, "task_ui"},
		{args{"project_id": "proj_login", "status": done}, ""},
	} {
		var got []string
		for _, found := range result[taskPage](t, "list_tasks", test.in).Tasks {
			got = append(got, found.ID)
			if found.Description != "" {
				t.Errorf("the list has the description %q", found.Description)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("list_tasks(%v): %v, want %s", test.in, got, test.want)
		}
	}
	p := result[projectDetail](t, "get_project", args{"project_id": "proj_login"})
	if p.OpenTasks != 2 || p.TaskCounts[inProgress] != 1 || p.TaskCounts[backlog] != 1 || len(p.TaskCounts) != 2 {
		t.Errorf("project %+v", p)
	}
}

// TestLargestPages holds that the largest pages of the longest texts are within the host's limit on a result.
func TestLargestPages(t *testing.T) {
	t.Parallel()
	office(t)
	long := strings.Repeat("\x01", 3999) // six bytes each in JSON
	handOff := func(id string) {
		result[createdHandoff](t, "create_handoff", args{"task_id": id, "from_agent_id": "agt_ann", "summary": long + "x", "context": long, "recommendations": long})
	}
	for i := range 50 {
		id := fmt.Sprintf("task_%d", i)
		result[taskDetail](t, "create_task", args{"project_id": "proj_login", "task_id": id, "title": "t"})
		handOff(id)
	}
	for range 20 {
		result[savedContext](t, "save_context", args{"task_id": "task_0", "progress": long, "findings": long, "blockers": long, "next_steps": long})
		handOff("task_0")
	}
	for tool, in := range map[string]args{
		"get_pending_handoffs": {"limit": 50},
		"get_task_context":     {"task_id": "task_0", "include_history": true, "limit": 20},
	} {
		if n := len(call(t, "en", tool, in).StructuredContent); n < 1<<20 || int64(n) > manifest.DefaultLimits.Output {
			t.Errorf("%s gives %d bytes", tool, n)
		}
	}
}
