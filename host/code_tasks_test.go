package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// values are the arguments or the result of a tool.
type values = map[string]any

// atOnce limits the calls that the model of the tasks makes in one answer without code mode.
const atOnce = 20

// codeTask is work that takes many calls. Each way ends with the same effects.
type codeTask struct {
	name string
	// calls does the work with a model that calls the tools itself.
	calls func(m *taskModel)
	// code is the program that does the same.
	code string
}

var codeTasks = []codeTask{
	{"overtime of 300 people into a sheet, and a message", func(m *taskModel) {
		people := m.turn(toolUse{"list_people", values{}})[0]["people"].([]any)
		rows := [][]any{}
		for batch := range slices.Chunk(people, atOnce) {
			var uses []toolUse
			for _, id := range batch {
				uses = append(uses, toolUse{"get_overtime", values{"id": id}})
			}
			for i, result := range m.turn(uses...) {
				rows = append(rows, []any{batch[i], result["minutes"]})
			}
		}
		m.turn(toolUse{"write_rows", values{"rows": rows}})
		m.turn(toolUse{"send", values{"text": fmt.Sprint(len(rows), " rows")}})
	}, `const { people } = await tools.list_people();
const rows = await Promise.all(people.map(async id => [id, (await tools.get_overtime({ id })).minutes]));
await tools.write_rows({ rows });
await tools.send({ text: rows.length + " rows" });
return rows.length + " rows written"`},
	{"the week's weather of 47 prefectures", func(m *taskModel) {
		warmest, place := -100.0, ""
		for first := 0; first < 47; first += atOnce {
			var uses []toolUse
			for i := first; i < min(47, first+atOnce); i++ {
				uses = append(uses, toolUse{"get_weather", values{"place": fmt.Sprint("prefecture ", i)}})
			}
			for i, result := range m.turn(uses...) {
				for _, day := range result["days"].([]any) {
					if c := day.(values)["max"].(float64); c > warmest {
						warmest, place = c, uses[i].arguments["place"].(string)
					}
				}
			}
		}
		m.turn(toolUse{"send", values{"text": place}})
	}, `const places = Array.from({ length: 47 }, (_, i) => "prefecture " + i);
const weeks = await Promise.all(places.map(async place => ({ place, max: Math.max(...(await tools.get_weather({ place })).days.map(d => d.max)) })));
const warmest = weeks.reduce((a, b) => b.max > a.max ? b : a);
await tools.send({ text: warmest.place });
return warmest`},
	{"find files by content and move them", func(m *taskModel) {
		files := m.turn(toolUse{"list_files", values{}})[0]["files"].([]any)
		for batch := range slices.Chunk(files, atOnce) {
			var reads, moves []toolUse
			for _, file := range batch {
				reads = append(reads, toolUse{"read_file", values{"path": file}})
			}
			for i, result := range m.turn(reads...) {
				if strings.Contains(result["text"].(string), "invoice") {
					moves = append(moves, toolUse{"move_file", values{"from": batch[i], "to": "invoices/" + batch[i].(string)}})
				}
			}
			m.turn(moves...)
		}
	}, `const { files } = await tools.list_files();
const texts = await Promise.all(files.map(async path => ({ path, ...await tools.read_file({ path }) })));
const found = texts.filter(f => f.text.includes("invoice"));
for (const { path } of found) await tools.move_file({ from: path, to: "invoices/" + path });
return found.length + " files moved"`},
	{"hand over the tasks of a project", func(m *taskModel) {
		tasks := m.turn(toolUse{"list_tasks", values{}})[0]["tasks"].([]any)
		for batch := range slices.Chunk(tasks, atOnce) {
			var reads, updates []toolUse
			for _, id := range batch {
				reads = append(reads, toolUse{"get_task", values{"id": id}})
			}
			for i, result := range m.turn(reads...) {
				if result["open"].(bool) {
					updates = append(updates, toolUse{"assign_task", values{"id": batch[i], "to": "ben"}})
				}
			}
			m.turn(updates...)
		}
		m.turn(toolUse{"send", values{"text": "handed over"}})
	}, `const { tasks } = await tools.list_tasks();
const all = await Promise.all(tasks.map(async id => ({ id, ...await tools.get_task({ id }) })));
const open = all.filter(t => t.open);
for (const { id } of open) await tools.assign_task({ id, to: "ben" });
await tools.send({ text: "handed over" });
return open.length + " tasks handed over"`},
	{"join orders and customers of two servers", func(m *taskModel) {
		results := m.turn(toolUse{"list_orders", values{}}, toolUse{"list_customers", values{}})
		m.turn(toolUse{"write_rows", values{"rows": joinOrders(results[0], results[1])}})
	}, `const [{ orders }, { customers }] = await Promise.all([tools.list_orders(), tools.list_customers()]);
const city = new Map(customers.map(c => [c.id, c.city])), sums = new Map();
for (const o of orders) sums.set(city.get(o.customer), (sums.get(city.get(o.customer)) ?? 0) + o.yen);
const rows = [...sums].sort();
await tools.write_rows({ rows });
return rows.length + " cities"`},
}

// joinOrders returns the sums of the orders by the customers' cities.
func joinOrders(orders, customers values) (rows [][]any) {
	city, sums := values{}, map[string]float64{}
	for _, c := range customers["customers"].([]any) {
		city[fmt.Sprint(c.(values)["id"])] = c.(values)["city"]
	}
	for _, o := range orders["orders"].([]any) {
		sums[city[fmt.Sprint(o.(values)["customer"])].(string)] += o.(values)["yen"].(float64)
	}
	for name, sum := range sums {
		rows = append(rows, []any{name, sum})
	}
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return rows
}

// numbered returns n values.
func numbered(n int, value func(i int) any) (list []any) {
	for i := range n {
		list = append(list, value(i))
	}
	return list
}

// taskTools are stand-ins for the tools of the tasks. Those that return nothing have effects.
var taskTools = map[string]func(arguments values) values{
	"list_people":  func(values) values { return values{"people": numbered(300, func(i int) any { return 1000 + i })} },
	"get_overtime": func(a values) values { return values{"minutes": int(a["id"].(float64)) % 97 * 10, "month": "2026-05"} },
	"get_weather": func(a values) values {
		return values{"place": a["place"], "days": numbered(7, func(i int) any {
			return values{"date": fmt.Sprint("2026-06-0", i+1), "weather": "cloudy, later clear", "min": 12 + i, "max": 20 + i + len(a["place"].(string))}
		})}
	},
	"list_files": func(values) values {
		return values{"files": numbered(40, func(i int) any { return fmt.Sprintf("inbox/%02d.txt", i) })}
	},
	"read_file": func(a values) values {
		text := strings.Repeat("A line of a letter that somebody wrote. ", 30)
		if strings.Contains(a["path"].(string), "5.") {
			text += "invoice"
		}
		return values{"text": text}
	},
	"list_tasks": func(values) values { return values{"tasks": numbered(30, func(i int) any { return i })} },
	"get_task": func(a values) values {
		return values{"title": "a task", "open": int(a["id"].(float64))%3 == 0, "notes": strings.Repeat("What was done so far. ", 20)}
	},
	"list_orders": func(values) values {
		return values{"orders": numbered(200, func(i int) any { return values{"id": i, "customer": i % 80, "yen": 1000 + i, "date": "2026-05-11"} })}
	},
	"list_customers": func(values) values {
		return values{"customers": numbered(80, func(i int) any {
			return values{"id": i, "city": fmt.Sprint("city ", i%9), "name": fmt.Sprint("customer ", i)}
		})}
	},
	"write_rows": nil, "send": nil, "move_file": nil, "assign_task": nil,
}

// taskTool is one of taskTools. Effects are recorded.
type taskTool struct {
	name    string
	effects chan string
}

func (s taskTool) Call(_ context.Context, i *catalog.Invocation) (*abi.Response, error) {
	result := values{}
	if do := taskTools[s.name]; do == nil {
		s.effects <- s.name + " " + string(i.Request.Arguments)
	} else {
		arguments := values{}
		if err := json.Unmarshal(i.Request.Arguments, &arguments); err != nil {
			return nil, err
		}
		result = do(arguments)
	}
	data, err := json.Marshal(result)
	return &abi.Response{StructuredContent: data}, err
}

// toolUse is a call that a model writes.
type toolUse struct {
	name      string
	arguments values
}

// taskModel is a model that follows a script. It counts what a model would read and write.
type taskModel struct {
	w                            *world
	turns, context, read, writes int
}

// tokens estimates the tokens of a text: one for four bytes.
func tokens(text string) int { return (len(text) + 3) / 4 }

// turn is one answer of the model with calls. It reads all that is in its context, and the results become a part of it.
func (m *taskModel) turn(uses ...toolUse) (results []values) {
	m.turns++
	m.read += m.context
	for _, use := range uses {
		arguments, err := json.Marshal(use.arguments)
		if err != nil {
			m.w.t.Fatal(err)
		}
		result, err := m.w.Call(m.w.t.Context(), &pipeline.Call{
			Caller:  pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"},
			Request: abi.Request{Method: abi.CallTool, Name: use.name, Arguments: arguments}})
		if err != nil || result.Response.IsError {
			m.w.t.Fatalf("%s: %v %+v", use.name, err, result)
		}
		text := string(result.Response.StructuredContent)
		value := values{}
		if text == "" {
			text = result.Response.Content[0].Text
		} else if err := json.Unmarshal([]byte(text), &value); err != nil {
			m.w.t.Fatal(err)
		}
		results = append(results, value)
		written := tokens(use.name + string(arguments))
		m.writes += written
		m.context += written + tokens(text)
	}
	return results
}

// TestCodeTasks does five tasks with and without code mode, which have the same effects, and logs what they cost.
// docs/plugins/code.md has the table.
func TestCodeTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Settings = map[string]host.Settings{"code": {Limits: manifest.Limits{Calls: 400, Time: patience}}}
	})
	w.put("code.wasm", codePlugin(t))
	w.load()
	w.approve("code.wasm", nil)
	w.load()
	effects := make(chan string, 1000)
	for name := range taskTools {
		m, err := manifest.Parse([]byte("name: " + strings.ReplaceAll(name, "_", "-") + "\nversion: 1.0.0\ntools: [{name: " + name +
			", description: A tool of the tasks., inputSchema: {type: object}}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Catalog().Put(catalog.Source{Name: m.Name, Backend: taskTool{name, effects}}, m); err != nil {
			t.Fatal(err)
		}
	}
	take := func() (list []string) {
		for len(effects) > 0 {
			list = append(list, <-effects)
		}
		slices.Sort(list)
		return list
	}
	t.Log("| task | answers of the model | tokens read | tokens written | seconds of hako |")
	for _, task := range codeTasks {
		start := time.Now()
		without := &taskModel{w: w, context: 1000}
		task.calls(without)
		withoutTook, want := time.Since(start), take()
		start = time.Now()
		with := &taskModel{w: w, context: 1000}
		with.turn(toolUse{"run_code", values{"code": task.code}})
		withTook, got := time.Since(start), take()
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: the program has the effects %.500q, the calls %.500q", task.name, got, want)
		}
		for _, m := range []*taskModel{without, with} { // the last answer, which has no calls
			m.turn()
		}
		if with.turns != 2 || with.read >= without.read {
			t.Errorf("%s: %d answers, %d tokens read instead of %d", task.name, with.turns, with.read, without.read)
		}
		t.Logf("| %s | %d → %d | %d → %d | %d → %d | %.2f → %.2f |", task.name, without.turns, with.turns, without.read, with.read,
			without.writes, with.writes, withoutTook.Seconds(), withTook.Seconds())
	}
}
