package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/freee"
)

// values are the arguments or the result of a tool.
type values = map[string]any

const (
	// callsInAnswer limits the calls that the model of the tasks makes in one answer without code mode.
	callsInAnswer = 20
	// callsAtOnce bounds the parallel calls, as a program is bounded.
	callsAtOnce = 8
)

// codeTask is work that takes many calls. Each way ends with the same effects.
type codeTask struct {
	name string
	// effects is the number of cells, messages, files and hand-offs that the task creates.
	effects int
	// calls does the work with a model that calls the tools itself.
	calls func(m *taskModel)
	// find is the query of the model for find_tools, before it writes a program that does the same.
	find, code string
}

var overtimeTask = fmt.Sprintf("overtime of %d people into a sheet, and a message to the leads", overtimePeople)

var codeTasks = []codeTask{
	{overtimeTask, overtimePeople + 2, func(m *taskModel) {
		page := func(offset int) toolUse {
			return toolUse{"calculate_overtime", values{"month": "2026-05", "limit": 100, "offset": offset}}
		}
		first := m.turn(page(0), findLead("見本 あき"), findLead("見本 健"))
		var rest []toolUse
		for offset := 100; offset < int(first[0]["total"].(float64)); offset += 100 {
			rest = append(rest, page(offset))
		}
		var rows [][]any
		var over []string
		for _, result := range append(first[:1:1], m.turn(rest...)...) {
			for _, person := range list(result, "employees") {
				minutes := person["total_overtime_minutes"].(float64)
				rows = append(rows, []any{person["name"], minutes})
				if minutes > 2700 {
					over = append(over, person["name"].(string))
				}
			}
		}
		m.turn(writeRows("勤怠 2026", rows))
		text := fmt.Sprintf("%d people. More than 45 hours: %s", len(rows), strings.Join(over, ", "))
		m.turn(tell(leadOf(first[1]), text), tell(leadOf(first[2]), text))
	}, "overtime, rows into a Google sheet, find Slack user, Slack message",
		`const { employees } = await tools.calculate_overtime({ month: "2026-05", limit: 500 });
const rows = employees.map(e => [e.name, e.total_overtime_minutes]);
await tools.write_rows_to_google_sheet({ spreadsheet_id: "` + fakes.Spreadsheet + `", range: "勤怠 2026", rows });
const over = rows.filter(r => r[1] > 2700).map(r => r[0]);
const message = rows.length + " people. More than 45 hours: " + over.join(", ");
for (const name of ["見本 あき", "見本 健"]) {
  const { users } = await tools.find_slack_user({ name });
  await tools.send_slack_dm({ user_id: users[0].user_id, message });
}
return message`},
	{"the week's weather of 47 prefectures", 1, func(m *taskModel) {
		best, warmest := -100.0, ""
		for names := range slices.Chunk(strings.Fields(prefectures), callsInAnswer) {
			var uses []toolUse
			for _, name := range names {
				uses = append(uses, toolUse{"get_weather", values{"location": name, "date": "week"}})
			}
			for i, result := range m.turn(uses...) {
				for _, day := range list(result, "days") {
					if high, ok := day["high"].(float64); ok && high > best {
						best, warmest = high, names[i]
					}
				}
			}
		}
		found := m.turn(findLead("見本 あき"))
		m.turn(tell(leadOf(found[0]), fmt.Sprintf("%s: %v °C", warmest, best)))
	}, "weather forecast, find Slack user, Slack message",
		`const names = "` + prefectures + `".split(" ");
const weeks = await Promise.all(names.map(async location => {
  const { days } = await tools.get_weather({ location, date: "week" });
  return { location, high: Math.max(...days.map(d => d.high ?? -100)) };
}));
const best = weeks.reduce((a, b) => b.high > a.high ? b : a);
const { users } = await tools.find_slack_user({ name: "見本 あき" });
const message = best.location + ": " + best.high + " °C";
await tools.send_slack_dm({ user_id: users[0].user_id, message });
return message`},
	{"find files by content and move them", 45, func(m *taskModel) {
		found := m.turn(toolUse{"file_search", values{"path": "inbox", "text": "Invoice date:"}})
		for matches := range slices.Chunk(list(found[0], "matches"), callsInAnswer) {
			var moves []toolUse
			for _, match := range matches {
				from, month := match["path"].(string), match["text"].(string)[len("Invoice date: "):][:7]
				moves = append(moves, toolUse{"file_move",
					values{"from": from, "to": "invoices/" + month + "/" + strings.TrimPrefix(from, "inbox/")}})
			}
			m.turn(moves...)
		}
	}, "search files by text, move file",
		`const { matches } = await tools.file_search({ path: "inbox", text: "Invoice date:" });
await Promise.all(matches.map(({ path, text }) => {
  const month = text.match(/Invoice date: (\d+-\d+)/)[1];
  return tools.file_move({ from: path, to: path.replace("inbox/", "invoices/" + month + "/") });
}));
return matches.length + " files moved"`},
	{"hand over the tasks of a project", 16, func(m *taskModel) {
		found := m.turn(toolUse{"list_tasks", values{"project_id": "proj_move", "assignee_id": "agt_aki"}})
		var mine []values
		for _, task := range list(found[0], "tasks") {
			if task["status"] == "in_progress" {
				mine = append(mine, task)
			}
		}
		for tasks := range slices.Chunk(mine, callsInAnswer) {
			var reads, handoffs []toolUse
			for _, task := range tasks {
				reads = append(reads, toolUse{"get_task_context", values{"task_id": task["task_id"]}})
			}
			for i, result := range m.turn(reads...) {
				known := result["context"].(values)
				handoffs = append(handoffs, toolUse{"create_handoff", values{"task_id": tasks[i]["task_id"],
					"from_agent_id": "agt_aki", "to_agent_id": "agt_ben",
					"summary": fmt.Sprintf("%s Next: %s", known["progress"], known["next_steps"])}})
			}
			m.turn(handoffs...)
		}
	}, "list tasks of a project, get task context, create hand-off",
		`const { tasks } = await tools.list_tasks({ project_id: "proj_move", assignee_id: "agt_aki" });
const mine = tasks.filter(t => t.status === "in_progress");
await Promise.all(mine.map(async ({ task_id }) => {
  const { context } = await tools.get_task_context({ task_id });
  const summary = context.progress + " Next: " + context.next_steps;
  await tools.create_handoff({ task_id, from_agent_id: "agt_aki", to_agent_id: "agt_ben", summary });
}));
return mine.length + " tasks handed over"`},
	{"join orders and customers of two servers", 9, func(m *taskModel) {
		results := m.turn(toolUse{"shop_list_orders", values{}}, toolUse{"crm_list_customers", values{}})
		city, sums := map[any]string{}, map[string]float64{}
		for _, customer := range list(results[1], "customers") {
			city[customer["id"]] = customer["city"].(string)
		}
		for _, order := range list(results[0], "orders") {
			sums[city[order["customer"]]] += order["yen"].(float64)
		}
		var rows [][]any
		for name, sum := range sums {
			rows = append(rows, []any{name, sum})
		}
		slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
		m.turn(writeRows("Sheet1", rows))
	}, "orders of the shop, customers, rows into a Google sheet",
		`const [{ orders }, { customers }] = await Promise.all([tools.shop_list_orders(), tools.crm_list_customers()]);
const city = new Map(customers.map(c => [c.id, c.city])), sums = new Map();
for (const o of orders) sums.set(city.get(o.customer), (sums.get(city.get(o.customer)) ?? 0) + o.yen);
const rows = [...sums].sort();
await tools.write_rows_to_google_sheet({ spreadsheet_id: "` + fakes.Spreadsheet + `", range: "Sheet1", rows });
return rows.length + " cities"`},
}

const prefectures = "北海道 青森県 岩手県 宮城県 秋田県 山形県 福島県 茨城県 栃木県 群馬県 埼玉県 千葉県 東京都 神奈川県 新潟県 富山県 " +
	"石川県 福井県 山梨県 長野県 岐阜県 静岡県 愛知県 三重県 滋賀県 京都府 大阪府 兵庫県 奈良県 和歌山県 鳥取県 島根県 岡山県 広島県 " +
	"山口県 徳島県 香川県 愛媛県 高知県 福岡県 佐賀県 長崎県 熊本県 大分県 宮崎県 鹿児島県 沖縄県"

// list returns the objects in a field of a result.
func list(result values, field string) (objects []values) {
	for _, object := range result[field].([]any) {
		objects = append(objects, object.(values))
	}
	return objects
}

func findLead(name string) toolUse { return toolUse{"find_slack_user", values{"name": name}} }

// leadOf returns the ID that find_slack_user has found.
func leadOf(result values) any { return list(result, "users")[0]["user_id"] }

func tell(user any, message string) toolUse {
	return toolUse{"send_slack_dm", values{"user_id": user, "message": message}}
}

func writeRows(sheet string, rows [][]any) toolUse {
	return toolUse{"write_rows_to_google_sheet",
		values{"spreadsheet_id": fakes.Spreadsheet, "range": sheet, "rows": rows}}
}

// taskWorld is a "hako serve" with the shipped plugins on the fakes and two upstream servers, and an MCP client.
type taskWorld struct {
	t      *testing.T
	dir    string
	fakes  *fakes.Fakes
	client *mcp.ClientSession
}

// newTaskWorld starts one whose forecasts are those of a time.
func newTaskWorld(t *testing.T, now time.Time) *taskWorld {
	t.Helper()
	needsPlugins(t)
	w := &taskWorld{t: t, dir: t.TempDir(), fakes: fakes.New()}
	w.fakes.JMA.Now = func() time.Time { return now }
	company := &freee.Company{ID: 12345, Role: "company_admin", Employees: taskPeople()}
	people := freee.New(&freee.Options{Companies: []*freee.Company{company}})
	mux := http.NewServeMux()
	mux.Handle("/", w.fakes)
	mux.Handle("/freee/", http.StripPrefix("/freee", people))
	mux.Handle("/shop", upstreamServer("list_orders", "orders", 200, func(i int) any {
		return values{"id": i, "customer": i * 7 % 80, "yen": 1000 + i, "date": "2026-05-11"}
	}))
	mux.Handle("/crm", upstreamServer("list_customers", "customers", 80, func(i int) any {
		return values{"id": i, "city": fmt.Sprint("city ", i%9), "name": fmt.Sprint("customer ", i)}
	}))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	upstreams := `{"mcpServers": {"shop": {"url": "URL/shop"}, "crm": {"url": "URL/crm"}}}`
	for name, text := range map[string]string{
		"hako.yaml":        must(w.fakes.WriteConfig(w.dir, web.URL)) + "upstreams: servers.json\n",
		"freee.token":      people.Issue(company.ID).Access,
		"servers.json":     strings.ReplaceAll(upstreams, "URL", web.URL),
		"hako.policy.yaml": "version: 1\nrules: [{name: the tasks, action: allow, tools: ['*']}]\n",
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.fillWorkspace()
	invoke(t, w.dir, "plugin", "approve", "code", "--yes").want(t, exitOK)
	s := serve(t, w.dir)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	w.client = must(client.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: httpClient}, nil))
	t.Cleanup(func() { _ = w.client.Close() })
	w.fillProject()
	for _, tool := range []string{"shop_list_orders", "crm_list_customers"} {
		waitUntil(t, tool, func() bool {
			_, _, err := w.use(toolUse{tool, values{}})
			return err == nil
		})
	}
	return w
}

// taskPeople are people with overtime in May 2026.
func taskPeople() (people []*freee.Employee) {
	for i := range overtimePeople {
		e := &freee.Employee{ID: 1001 + i, Num: fmt.Sprintf("%03d", i+1), LastName: "見本",
			FirstName: fmt.Sprintf("%03d", i+1), Hired: "2020-04-01", EmploymentType: freee.Text("regular"),
			Memberships: []freee.Membership{{Group: fmt.Sprint("第", i%6+1, "課")}}, Days: map[string]freee.Day{}}
		for _, day := range []int{7, 8, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22} {
			e.Days[fmt.Sprintf("2026-05-%02d", day)] = freee.Day{
				Work:   []freee.Span{{In: "09:00", Out: fmt.Sprintf("%d:%02d", 18+i%5, i%60)}},
				Breaks: []freee.Span{{In: "12:00", Out: "13:00"}}}
		}
		people = append(people, e)
	}
	return people
}

// upstreamServer serves an MCP server with one tool, which returns n values in a field.
func upstreamServer(tool, field string, n int, value func(i int) any) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: tool, Version: "1"}, nil)
	type result = map[string][]any
	mcp.AddTool(server, &mcp.Tool{Name: tool, Description: "Lists all " + field + "."},
		func(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, result, error) {
			var all []any
			for i := range n {
				all = append(all, value(i))
			}
			return nil, result{field: all}, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// fillWorkspace writes 90 letters, 45 of which are invoices.
func (w *taskWorld) fillWorkspace() {
	w.t.Helper()
	for i := range 90 {
		text := strings.Repeat("A line of a letter that somebody wrote.\n", 30)
		if i%2 == 0 {
			text += fmt.Sprintf("Invoice date: 2026-%02d-15\n", i%3+4)
		}
		put(w.t, filepath.Join(w.dir, "workspace", "inbox", fmt.Sprintf("%02d.txt", i)), []byte(text))
	}
	for _, month := range []string{"2026-04", "2026-05", "2026-06"} {
		if err := os.MkdirAll(filepath.Join(w.dir, "workspace", "invoices", month), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
}

// fillProject makes a project with 24 tasks, 16 of which are in progress.
func (w *taskWorld) fillProject() {
	w.t.Helper()
	w.call("register_agent", values{"name": "aki", "agent_id": "agt_aki"})
	w.call("register_agent", values{"name": "ben", "agent_id": "agt_ben"})
	w.call("create_project", values{"name": "Move to another office", "project_id": "proj_move"})
	for i := range 24 {
		id, status := fmt.Sprintf("task_%02d", i), "in_progress"
		if i%3 == 0 {
			status = "todo"
		}
		w.call("create_task", values{"project_id": "proj_move", "task_id": id, "title": fmt.Sprint("Room ", i),
			"status": status, "assignee_id": "agt_aki"})
		w.call("save_context", values{"task_id": id, "agent_id": "agt_aki",
			"progress":   fmt.Sprintf("Room %d is measured. %s", i, strings.Repeat("A desk fits. ", 20)),
			"next_steps": fmt.Sprintf("Order %d desks.", i+2)})
	}
}

// use calls a tool over MCP and returns its result, and the text of it that a model reads.
func (w *taskWorld) use(use toolUse) (result values, text string, err error) {
	answer, err := w.client.CallTool(w.t.Context(), &mcp.CallToolParams{Name: use.name, Arguments: use.arguments})
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", use.name, err)
	}
	for _, block := range answer.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	if answer.IsError {
		return nil, "", fmt.Errorf("%s: %s", use.name, text)
	}
	result, _ = answer.StructuredContent.(values)
	return result, text, nil
}

// call is use for a call that is not the model's.
func (w *taskWorld) call(name string, arguments values) values {
	w.t.Helper()
	result, _, err := w.use(toolUse{name, arguments})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// effects returns what the tools have written: rows, messages, files and pending hand-offs, sorted.
func (w *taskWorld) effects() (lines []string) {
	w.t.Helper()
	for _, sheet := range []string{"勤怠 2026", "Sheet1"} {
		for i, row := range w.fakes.Google.Values(fakes.Spreadsheet, sheet) {
			lines = append(lines, fmt.Sprint(sheet, " ", i, " ", row))
		}
	}
	for _, m := range w.fakes.Slack.Messages() {
		lines = append(lines, fmt.Sprint("message ", m.Channel, " ", m.Text))
	}
	root := os.DirFS(filepath.Join(w.dir, "workspace"))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			lines = append(lines, fmt.Sprint("file ", path, " ", len(must(fs.ReadFile(root, path)))))
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	pending := w.call("get_pending_handoffs", values{"agent_id": "agt_ben"})
	for _, h := range list(pending, "handoffs") {
		lines = append(lines, fmt.Sprint("hand-off ", h["task_id"], " ", h["from_agent_id"], " ", h["summary"]))
	}
	slices.Sort(lines)
	return lines
}

// toolUse is a call that a model writes.
type toolUse struct {
	name      string
	arguments values
}

// taskModel is a model that follows a script. It counts what a model would read and write.
type taskModel struct {
	w                            *taskWorld
	turns, context, read, writes int
	// texts are those of the results of the last turn.
	texts []string
}

// tokens estimates the tokens of a text: one for four bytes.
func tokens(text string) int { return (len(text) + 3) / 4 }

// turn is one answer of the model with calls. It reads all that is in its context, and the results become a part of it.
func (m *taskModel) turn(uses ...toolUse) []values {
	m.w.t.Helper()
	m.turns++
	m.read += m.context
	results := make([]values, len(uses))
	m.texts = make([]string, len(uses))
	var calls errgroup.Group
	calls.SetLimit(callsAtOnce)
	for i, use := range uses {
		calls.Go(func() (err error) {
			results[i], m.texts[i], err = m.w.use(use)
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		m.w.t.Fatal(err)
	}
	for i, use := range uses {
		written := tokens(use.name + string(must(json.Marshal(use.arguments))))
		m.writes += written
		m.context += written + tokens(m.texts[i])
	}
	return results
}

var calledTool = regexp.MustCompile(`tools\.\w+\(`)

// program does a task with run_code, after a look at the tools.
func (m *taskModel) program(task codeTask) {
	m.w.t.Helper()
	m.turn(toolUse{"find_tools", values{"query": task.find}})
	for _, tool := range calledTool.FindAllString(task.code, -1) {
		if !strings.Contains(m.texts[0], tool) {
			m.w.t.Errorf("find_tools %q does not find %s", task.find, tool)
		}
	}
	m.turn(toolUse{"run_code", values{"code": task.code}})
}

// beyond returns the lines that are not in others.
func beyond(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

// TestCodeTasks does five tasks with and without code mode, which have the same effects, and logs what they cost: over
// MCP, with the shipped plugins on the fakes, and two upstream servers. docs/plugins/code.md has the table.
func TestCodeTasks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	callsWorld, codeWorld := newTaskWorld(t, now), newTaskWorld(t, now)
	t.Log("| task | answers of the model | tokens read | tokens written | seconds in hako |")
	before := callsWorld.effects()
	for _, task := range codeTasks {
		without, with := &taskModel{w: callsWorld, context: 1000}, &taskModel{w: codeWorld, context: 1000}
		start := time.Now()
		task.calls(without)
		withoutTook := time.Since(start)
		start = time.Now()
		with.program(task)
		withTook := time.Since(start)
		want, got := callsWorld.effects(), codeWorld.effects()
		if !slices.Equal(got, want) {
			t.Errorf("%s: only the program has the effects %.1000q, only the calls %.1000q", task.name,
				beyond(got, want), beyond(want, got))
		}
		if added := beyond(want, before); len(added) != task.effects {
			t.Errorf("%s: %d effects, want %d: %.1000q", task.name, len(added), task.effects, added)
		}
		before = want
		for _, m := range []*taskModel{without, with} { // the last answer, which has no calls
			m.turn()
		}
		if with.turns > without.turns || with.read >= without.read {
			t.Errorf("%s: %d answers, %d tokens read instead of %d", task.name, with.turns, with.read, without.read)
		}
		t.Logf("| %s | %d → %d | %d → %d | %d → %d | %.2f → %.2f |", task.name, without.turns, with.turns, without.read,
			with.read, without.writes, with.writes, withoutTook.Seconds(), withTook.Seconds())
	}
}
