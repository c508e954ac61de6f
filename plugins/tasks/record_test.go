package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/dev/kit/pdksqltest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/pdksql"
	"github.com/hako-run/hako/pdk/pdktest"
)

// TestMisuse checks that every mistake gets an error that names what was wrong and the call that helps.
func TestMisuse(t *testing.T) {
	t.Parallel()
	office(t)
	for _, test := range []struct {
		tool  string
		in    args
		words []string
	}{
		{"get_agent_profile", args{"agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents"}},
		{"get_agent_profile", args{"agent_id": "task_ui"}, []string{`"task_ui"`, "agt_", "list_agents"}},
		{"get_project", args{"project_id": "proj_x"}, []string{`"proj_x"`, "list_projects"}},
		{"get_task", args{"task_id": "task_x"}, []string{`"task_x"`, "list_tasks", "project_id"}},
		{"get_task", args{"task_id": "' OR 1=1 --"}, []string{"' OR 1=1 --", "list_tasks"}},
		{"list_tasks", args{"project_id": "proj_x"}, []string{`"proj_x"`, "list_projects"}},
		{"list_tasks", args{"assignee_id": "agt_x"}, []string{`"agt_x"`, "list_agents"}},
		{"create_task", args{"project_id": "proj_x", "title": "t"}, []string{`"proj_x"`, "list_projects"}},
		{"create_task", args{"project_id": "proj_login", "title": "t", "assignee_id": "agt_x"},
			[]string{`"agt_x"`, "list_agents"}},
		{"create_task", args{"project_id": "proj_login", "title": "t", "task_id": "task_ui"}, []string{"task_ui"}},
		{"register_agent", args{"name": "n", "agent_id": "agt_ann"}, []string{"agt_ann"}},
		{"create_project", args{"name": "n", "project_id": "proj_login"}, []string{"proj_login"}},
		{"update_task_status", args{"task_id": "task_x", "status": done}, []string{`"task_x"`, "list_tasks"}},
		{"assign_task", args{"task_id": "task_x", "assignee_id": "agt_ann"}, []string{`"task_x"`, "list_tasks"}},
		{"save_context", args{"task_id": "task_x", "progress": "p"}, []string{`"task_x"`, "list_tasks"}},
		{"save_context", args{"task_id": "task_ui"}, []string{"progress", "next_steps"}},
		{"get_task_context", args{"task_id": "task_x"}, []string{`"task_x"`, "list_tasks"}},
		{"create_handoff", args{"task_id": "task_x", "from_agent_id": "agt_ann", "summary": "s"},
			[]string{`"task_x"`, "list_tasks"}},
		{"create_handoff", args{"task_id": "task_ui", "from_agent_id": "agt_x", "summary": "s"},
			[]string{`"agt_x"`, "list_agents"}},
		{"create_handoff", args{"task_id": "task_ui", "from_agent_id": "agt_ann", "to_agent_id": "agt_y",
			"summary": "s"}, []string{`"agt_y"`, "list_agents"}},
		{"accept_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_ann"},
			[]string{`"hnd_x"`, "get_pending_handoffs"}},
		{"accept_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents"}},
		{"get_pending_handoffs", args{"agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents"}},
		{"update_task", args{"task_id": "task_x", "title": "t"}, []string{`"task_x"`, "list_tasks"}},
		{"unassign_task", args{"task_id": "task_x"}, []string{`"task_x"`, "list_tasks"}},
		{"delete_task", args{"task_id": "task_x", "reason": "r"}, []string{`"task_x"`, "list_tasks"}},
		{"delete_task", args{"task_id": "task_ui", "reason": "r", "agent_id": "agt_x"},
			[]string{`"agt_x"`, "list_agents"}},
		{"next_task", args{"agent_id": "agt_x"}, []string{`"agt_x"`, "list_agents"}},
		{"next_task", args{"agent_id": "agt_ann", "project_id": "proj_x"}, []string{`"proj_x"`, "list_projects"}},
		{"withdraw_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_ann"},
			[]string{`"hnd_x"`, "get_pending_handoffs"}},
		{"decline_handoff", args{"handoff_id": "hnd_x", "agent_id": "agt_ann", "reason": "r"},
			[]string{`"hnd_x"`, "get_pending_handoffs"}},
	} {
		t.Run(fmt.Sprint(test.tool, test.in), func(t *testing.T) { refused(t, test.tool, test.in, test.words...) })
	}
}

// TestSchemasRefuse holds what the host refuses before the plugin runs.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("あ", 4001)
	for tool, bad := range map[string][]string{
		"register_agent": {`{}`, `{"name":" "}`, `{"name":"a\nb"}`, `{"name":"n","agent_id":"task_a"}`,
			`{"name":"n","agent_id":"agt_"}`, `{"name":"n","agent_id":"agt_a b"}`, `{"name":"` + long[:603] + `"}`},
		"create_task": {`{"title":"t"}`, `{"project_id":"p","title":"t","status":"done"}`,
			`{"project_id":"p","title":""}`},
		"update_task_status": {`{"task_id":"t"}`, `{"task_id":"t","status":"finished"}`,
			`{"task_id":"t","status":"done","version":0}`, `{"task_id":"","status":"done"}`,
			`{"task_id":7,"status":"done"}`},
		"save_context": {`{"progress":"p"}`, `{"task_id":"t","progress":"` + long + `"}`,
			`{"task_id":"t","nextSteps":"n"}`},
		"create_handoff": {`{"task_id":"t","from_agent_id":"a"}`,
			`{"task_id":"t","from_agent_id":"a","summary":"\n"}`, `{"task_id":"t","from_agent_id":"a","summary":"` +
				long + `"}`},
		"list_tasks":       {`{"limit":0}`, `{"limit":201}`, `{"status":"open"}`},
		"get_task_context": {`{"task_id":"t","limit":201}`, `{"task_id":"t","max_characters":999}`},
		"update_task": {`{"title":"t"}`, `{"task_id":"t","title":" "}`, `{"task_id":"t","priority":"urgent"}`,
			`{"task_id":"t","blocked_by":"task_a"}`},
		"unassign_task":        {`{"task_id":"t","assignee_id":"a"}`},
		"delete_task":          {`{"task_id":"t"}`, `{"task_id":"t","reason":" "}`},
		"decline_handoff":      {`{"handoff_id":"h","agent_id":"a"}`},
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

// TestIDs checks that new ids have the prefix of their kind, are drawn again when taken, and that drawing ends.
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
		if response := call(t, "en", tool, in); response.IsError ||
			!strings.Contains(string(response.StructuredContent), map[string]string{
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
	if err != nil || at.Location() != time.UTC || time.Since(at) > time.Minute ||
		created.UpdatedAt != created.CreatedAt {
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
		result[createdHandoff](t, "create_handoff", args{"task_id": "task_" + n, "from_agent_id": "agt_" + n,
			"summary": n})
		result[savedContext](t, "save_context", args{"task_id": "task_ui", "progress": n})
	}
	ids := func(list []any, key string) (got []string) {
		for _, item := range list {
			value := item.(map[string]any)[key]
			if saved, ok := value.(map[string]any); ok {
				value = saved["progress"]
			}
			got = append(got, fmt.Sprint(value))
		}
		return got
	}
	for _, test := range []struct{ tool, key, field, want string }{
		{"list_agents", "agents", "agent_id", "agt_ann agt_bob agt_0 agt_1 agt_2 agt_3 agt_4"},
		{"list_projects", "projects", "project_id", "proj_login proj_0 proj_1 proj_2 proj_3 proj_4"},
		{"list_tasks", "tasks", "task_id", "task_ui task_0 task_1 task_2 task_3 task_4"},
		{"get_pending_handoffs", "handoffs", "task_id", "task_0 task_1 task_2 task_3 task_4"},
		{"get_task_context", "history", "context", "4 3 2 1 0"},
	} {
		var got []string
		in := args{"limit": 2}
		if test.tool == "get_task_context" {
			in["task_id"], in["include_history"] = "task_ui", true
		}
		for offset := any(0); offset != nil; {
			in["offset"] = offset
			page := result[map[string]any](t, test.tool, in)
			list, _ := page[test.key].([]any)
			if len(list) > 2 || page["total_count"] != float64(len(strings.Fields(test.want))) {
				t.Fatalf("%s: a page of %d, %v in all", test.tool, len(list), page["total_count"])
			}
			got = append(got, ids(list, test.field)...)
			offset = page["next_offset"]
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.tool, got, test.want)
		}
		in["offset"] = 100
		if past := result[extent](t, test.tool, in); past.NextOffset != nil || len(past.Notes) != 1 ||
			!strings.Contains(past.Notes[0], "100") {
			t.Errorf("%s past the end: %+v", test.tool, past)
		}
	}
}

// TestCountsComeFirst checks that who reads a result from its beginning knows how much there is before the entries come.
func TestCountsComeFirst(t *testing.T) {
	t.Parallel()
	office(t)
	handOver(t, "agt_bob")
	result[savedContext](t, "save_context", args{"task_id": "task_ui", "progress": "p"})
	for tool, in := range map[string]args{
		"list_agents": {}, "list_projects": {}, "list_tasks": {}, "get_pending_handoffs": {},
		"get_task_context": {"task_id": "task_ui", "include_history": true},
	} {
		text := string(call(t, "en", tool, in).StructuredContent)
		head, _, found := strings.Cut(text, "[{")
		if !found || !strings.Contains(head, `"total_count":`) || !strings.Contains(head, `"next_offset":null`) ||
			!strings.Contains(head, `"notes":[]`) {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	office(t)
	result[taskDetail](t, "create_task", args{"project_id": "proj_login", "task_id": "task_api", "title": "API",
		"status": backlog})
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

// TestMigration checks that a database of the first version keeps its hand-offs, and that those of finished tasks are
// not pending any more.
func TestMigration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(manifestPath)
	must(t, err)
	first, rest, _ := strings.Cut(string(text), "      - |\n        ALTER TABLE tasks")
	path := filepath.Join(t.TempDir(), "tasks.yaml")
	must(t, os.WriteFile(path, []byte(first+rest[strings.Index(rest, "\ntools:"):]), 0o600))
	pdksqltest.Database(t, path)
	ctx := pdktest.Context(t, pdktest.Options{})
	run := func(statements string) {
		for statement := range strings.SplitSeq(statements, ";\n") {
			if strings.TrimSpace(statement) != "" {
				_, err := pdksql.Exec(ctx, statement)
				must(t, err)
			}
		}
	}
	run(`INSERT INTO agents (id, name, role, expertise, created_at) VALUES ('agt_ann', 'n', '', '', '2026-01-01T00:00:00Z');
INSERT INTO projects (id, name, description, created_at) VALUES ('proj_p', 'n', '', '2026-01-01T00:00:00Z');
INSERT INTO tasks (id, project_id, title, description, status, assignee_id, version, created_at, updated_at)
	SELECT value, 'proj_p', 't', '', iif(value = 'task_open', 'todo', 'done'), 'agt_ann', 1, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'
	FROM json_each('["task_open","task_done","task_kept"]');
INSERT INTO handoffs (id, task_id, from_agent_id, summary, context, recommendations, state, created_at, accepted_by, accepted_at)
	SELECT 'hnd_' || id, id, 'agt_ann', 's', '', '', iif(id = 'task_kept', 'accepted', 'pending'), created_at,
		iif(id = 'task_kept', 'agt_ann', NULL), iif(id = 'task_kept', created_at, NULL) FROM tasks;
`)
	run(shipped.Permissions.SQL.Migrations[1])
	if got := pendingIDs(t, ""); got != "hnd_task_open" {
		t.Errorf("pending: %s", got)
	}
	for id, want := range map[string]string{"task_done": ended + " " + taskDone + " 2026-01-02T00:00:00Z",
		"task_kept": accepted + "  ", "task_open": pending + "  "} {
		var h handoff
		must(t, json.Unmarshal([]byte(read(t, "en", "handoff://{taskId}", "taskId", id).Contents[0].Text), &h))
		if got := h.State + " " + h.Reason + " " + h.ClosedAt; got != want || h.Summary != "s" {
			t.Errorf("%s: %+v", id, h)
		}
	}
	if got := result[taskDetail](t, "get_task", args{"task_id": "task_open"}); got.Priority != medium {
		t.Errorf("the task is %+v", got)
	}
}

// TestBudget checks that the longest texts are cut to a budget, newest first, and that the rest can be had page by page.
func TestBudget(t *testing.T) {
	t.Parallel()
	office(t)
	long := func(n int, mark string) string { return strings.Repeat("\x01", n-len(mark)) + mark } // six bytes each in JSON
	handOff := func(id, mark string) {
		result[createdHandoff](t, "create_handoff",
			args{"task_id": id, "from_agent_id": "agt_ann", "summary": long(4000, mark), "context": long(4000, ""),
				"recommendations": long(4000, "")})
	}
	for i := range 5 {
		id := fmt.Sprintf("task_%d", i)
		result[taskDetail](t, "create_task",
			args{"project_id": "proj_login", "task_id": id, "title": "t", "assignee_id": "agt_ann"})
		handOff(id, id)
	}
	for i := range 20 {
		mark := fmt.Sprint("entry ", i)
		result[savedContext](t, "save_context",
			args{"task_id": "task_0", "progress": long(4000, mark), "findings": long(4000, ""),
				"blockers": long(4000, ""), "next_steps": long(4000, "")})
		handOff("task_0", mark)
	}

	seen := map[string]bool{}
	for offset := new(int); offset != nil; {
		page := result[handoffPage](t, "get_pending_handoffs", args{"offset": *offset})
		if len(page.Handoffs) != 1 || page.TotalCount != 5 || (page.NextOffset != nil) != (len(page.Notes) == 1) {
			t.Fatalf("a page of %d, next %v, notes %q", len(page.Handoffs), page.NextOffset, page.Notes)
		}
		seen[page.Handoffs[0].TaskID] = true
		offset = page.NextOffset
	}
	if len(seen) != 5 {
		t.Errorf("%d hand-offs are seen", len(seen))
	}

	for _, budget := range []int{1000, 20_000, 100_000} {
		var entries int
		for offset := new(int); offset != nil; {
			in := args{"task_id": "task_0", "include_history": true, "limit": 200, "max_characters": budget,
				"offset": *offset}
			page := result[taskContext](t, "get_task_context", in)
			if n := characters(&page); n > budget+2000 || len(page.History) == 0 {
				t.Fatalf("%d characters in %d entries with a budget of %d", n, len(page.History), budget)
			}
			if page.NextOffset != nil &&
				(len(page.Notes) != 1 || !strings.Contains(page.Notes[0], fmt.Sprintf("offset=%d", *page.NextOffset))) {
				t.Errorf("notes %q", page.Notes)
			}
			if *offset == 0 && !strings.Contains(*page.Context.Progress, "entry 19") != (budget == 1000) {
				t.Errorf("the context begins with %.50q", *page.Context.Progress)
			}
			entries += len(page.History)
			offset = page.NextOffset
		}
		if entries != 40 {
			t.Errorf("%d of 40 entries with a budget of %d", entries, budget)
		}
	}
	for _, name := range []string{"task_start", "context_summary"} {
		text := getPrompt(t, "en", name,
			map[string]string{"task_id": "task_0", "agent_id": "agt_ann"}).Messages[0].Content.Text
		if n := utf8.RuneCountInString(text); n > standardBudget+5000 ||
			!strings.Contains(text, "39 older entries are left out") || !strings.Contains(text, "more characters]") {
			t.Errorf("%s has %d characters: %.3000s", name, n, text[len(text)-3000:])
		}
	}
}

// characters counts what agents have written in a result.
func characters(c *taskContext) (n int) {
	texts := c.Context.texts()
	if c.PendingHandoff != nil {
		texts = append(texts, c.PendingHandoff.texts()...)
	}
	for i := range c.History {
		texts = append(texts, c.History[i].texts()...)
	}
	for _, text := range texts {
		if text != nil {
			n += utf8.RuneCountInString(*text)
		}
	}
	return n
}
