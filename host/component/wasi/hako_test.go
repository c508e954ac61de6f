package wasi_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

const database = "hako:sql/database#"

// Values of database.value.
var (
	null    = component.Case{}
	integer = component.Case{Number: 1, Value: int64(math.MinInt64)}
	float   = component.Case{Number: 2, Value: 0.5}
	words   = component.Case{Number: 3, Value: "日本語'"}
	blob    = component.Case{Number: 4, Value: []byte{0, 255}}
)

func TestSQL(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	g.want(g.ok(database+"exec", "CREATE TABLE a (v)", []any{}), []any{uint64(0), int64(0)})
	g.ok(database+"begin", true)
	values := []any{null, integer, float, words, blob}
	for i, v := range values {
		g.want(g.ok(database+"exec", "INSERT INTO a VALUES (?)", []any{v}), []any{uint64(1), int64(i + 1)})
	}
	g.ok(database + "commit")
	g.ok(database+"begin", true)
	g.ok(database+"exec", "DELETE FROM a", []any{})
	g.ok(database + "rollback")
	rows := make([]any, len(values))
	for i, v := range values {
		rows[i] = []any{v}
	}
	g.want(g.ok(database+"query", "SELECT v FROM a ORDER BY rowid", []any{}), []any{[]any{"v"}, rows})
}

func TestHostileSQL(t *testing.T) {
	t.Parallel()
	g := databaseGuest(t)
	for _, sql := range []string{"SELEC", "ATTACH 'x' AS x", "COMMIT", "SELECT CAST(x'ff' AS TEXT)", ""} {
		g.failed(database+"query", sql, []any{})
	}
	g.want(g.failed(database+"exec", "SELECT ?", []any{component.Case{Number: 4, Value: make([]byte, 9<<20)}}).([]any)[0],
		abi.CodeLimit)
	g = newGuest(t, wasi.Options{})
	for function, args := range map[string][]any{"query": {"SELECT 1", []any{}}, "exec": {"SELECT 1", []any{}},
		"begin": {true}, "commit": nil, "rollback": nil} {
		failed := g.failed(database+function, args...).([]any)
		if failed[0] != abi.CodeNotGranted || !strings.Contains(failed[1].(string), "permissions.sql") {
			t.Errorf("%s: %v", function, failed)
		}
	}
}

func TestCommandsRefused(t *testing.T) {
	t.Parallel()
	line := component.Case{Number: 1, Value: "ls"}
	argv := component.Case{Number: 0, Value: []any{"ls", "-l"}}
	options := []any{component.Some("/workspace"), component.Some(uint64(0))}
	g := newGuest(t, wasi.Options{})
	failed := g.failed("hako:exec/commands#run", line, options).([]any)
	if failed[0] != abi.CodeNotGranted || !strings.Contains(failed[1].(string), "permissions.exec") {
		t.Error(failed)
	}
	g = newGuest(t, wasi.Options{Exec: execbroker.Idle()})
	for _, command := range []component.Case{line, argv, {Number: 1, Value: "a\x00b"}, {Number: 0, Value: []any{}}} {
		g.failed("hako:exec/commands#run", command, options)
	}
}

// someTools answers calls with their arguments, and has one tool.
type someTools struct{}

func (someTools) Call(_ context.Context, request *abi.ToolCall, granted broker.Granted) (*abi.ToolEnd, int64) {
	if !granted("probe", request.Name) {
		return &abi.ToolEnd{Error: &abi.Error{Code: abi.CodeDenied, Message: "no"}}, 1
	}
	content := []abi.ToolContent{{Content: abi.Content{Type: "text", Text: "done"}}}
	return &abi.ToolEnd{StructuredContent: request.Arguments, Content: content}, 1
}

func (someTools) List(query *abi.ToolQuery, granted broker.Granted) *abi.ToolList {
	if query.Query == "nothing" || !granted("probe", "echo") {
		return &abi.ToolList{}
	}
	return &abi.ToolList{Total: 1, Tools: []abi.ListedTool{{Name: "echo", Plugin: "probe", Title: "Echo",
		Description: "Echoes.", InputSchema: json.RawMessage(`{"type":"object"}`), ReadOnly: true,
		Declaration: "tools.echo(args: {}): Promise<any>"}}}
}

func TestTools(t *testing.T) {
	t.Parallel()
	const calls = "hako:tools/calls#"
	echo, erase := []any{"echo", `{"a":1}`}, []any{"erase", "{}"}
	g := newGuest(t, wasi.Options{Tools: toolbroker.New([]string{"echo"}, 50, 8)})
	g.call.Tools = someTools{}
	answer := []any{component.Some(`{"a":1}`), `[{"type":"text","text":"done"}]`}
	denied := []any{abi.CodeDenied, "no"}
	g.want(g.ok(calls+"call", echo), answer)
	g.want(g.failed(calls+"call", erase), denied)
	g.want(g.do(calls+"call-all", []any{erase, echo}), []any{component.Failed(denied), component.OK(answer)})
	tool := []any{"echo", "probe", "Echo", "Echoes.", `{"type":"object"}`, component.None, true}
	g.want(g.ok(calls+"find", "", uint64(5)), []any{tool})
	g.want(g.ok(calls+"declare", "", uint64(5)), []any{"tools.echo(args: {}): Promise<any>"})
	g.want(g.ok(calls+"declare", "nothing", uint64(5)), []any{})

	g = newGuest(t, wasi.Options{})
	for function, args := range map[string][]any{"call": {echo}, "find": {"", uint64(1)}, "declare": {"", uint64(1)}} {
		failed := g.failed(calls+function, args...).([]any)
		if failed[0] != abi.CodeNotGranted || !strings.Contains(failed[1].(string), "permissions.tools") {
			t.Errorf("%s: %v", function, failed)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var reports []abi.Progress
	g := newGuest(t, wasi.Options{Progress: func(_ context.Context, p abi.Progress) { reports = append(reports, p) }})
	g.do("hako:tool/progress#report", 1.0, component.None, "one")
	g.do("hako:tool/progress#report", 2.0, component.Some(3.0), "")
	g.want(reports, []abi.Progress{{Progress: 1, Message: "one"}, {Progress: 2, Total: 3}})
	for i := range uint32(4) {
		g.do("hako:tool/log#write", component.Case{Number: i}, "x")
	}
	g.want(g.log.String(), "-4:x\n0:x\n4:x\n8:x\n")
}
