package wasi

import (
	"encoding/json"
	"math"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// hako are the packages of pdk/wit: hako's own permissions, and what every tool may use. wasmcp's interfaces of the
// server have no functions: a component may import them, and calling one ends the call.
func (h *host) hako() []broker.Interface {
	return []broker.Interface{
		{Name: "wasmcp:mcp-v20251125/server-auth"},
		{Name: "wasmcp:mcp-v20251125/server-handler"},
		{Name: "wasmcp:mcp-v20251125/server-io"},
		{Name: "hako:sql/database", Version: "1", Functions: functions{
			"query": func2(h.sqlQuery),
			"exec":  func2(h.sqlExec),
			"begin": func1(func(c caller, write bool) any {
				return h.sqlDone(func() *abi.Error { return h.SQL.Begin(c.ctx, c.Call, write) })
			}),
			"commit": func0(func(c caller) any {
				return h.sqlDone(func() *abi.Error { return h.SQL.Commit(c.ctx, c.Call) })
			}),
			"rollback": func0(func(c caller) any {
				return h.sqlDone(func() *abi.Error { return h.SQL.Rollback(c.ctx, c.Call) })
			}),
		}},
		{Name: "hako:exec/commands", Version: "1", Functions: functions{"run": func2(h.runCommand)}},
		{Name: "hako:tools/calls", Version: "1", Functions: functions{
			"call":     func1(func(c caller, request []any) any { return h.callTools(c, []any{request})[0] }),
			"call-all": func1(func(c caller, requests []any) any { return h.callTools(c, requests) }),
			"find":     func2(h.findTools),
			"declare":  func2(h.declareTools),
		}},
		{Name: "hako:tool/log", Version: "1", Functions: functions{
			"write": func2(func(c caller, level component.Case, text string) any {
				// The levels are those of wasi:logging from debug to error.
				h.Log(c.ctx, logLevels[1+min(level.Number, 3)], text)
				return nil
			}),
		}},
		{Name: "hako:tool/progress", Version: "1", Functions: functions{
			"report": func3(func(c caller, progress float64, total component.Case, message string) any {
				c.Charge(broker.LineSteps)
				report := abi.Progress{Progress: progress, Message: message}
				if total.Number != 0 {
					report.Total = arg[float64]([]any{total.Value}, 0)
				}
				h.Progress(c.ctx, report)
				return nil
			}),
		}},
	}
}

// failure returns a failed result with the record error of pdk/wit.
func failure(err *abi.Error) component.Case { return component.Failed([]any{err.Code, err.Message}) }

// sqlQuery returns the rows of a statement.
func (h *host) sqlQuery(c caller, sql string, parameters []any) any {
	if h.SQL == nil {
		return failure(errNoDatabase)
	}
	result := h.SQL.Query(c.ctx, c.Call, &abi.SQLStatement{SQL: sql, Args: sqlArgs(parameters)})
	if result.Error != nil {
		return failure(result.Error)
	}
	rows := make([]any, len(result.Rows))
	for i, row := range result.Rows {
		values := make([]any, len(row))
		for j, v := range row {
			values[j] = sqlValue(v)
		}
		rows[i] = values
	}
	return component.OK([]any{texts(result.Columns), rows})
}

// sqlExec returns the changes of a statement.
func (h *host) sqlExec(c caller, sql string, parameters []any) any {
	if h.SQL == nil {
		return failure(errNoDatabase)
	}
	result := h.SQL.Exec(c.ctx, c.Call, &abi.SQLStatement{SQL: sql, Args: sqlArgs(parameters)})
	if result.Error != nil {
		return failure(result.Error)
	}
	return component.OK([]any{uint64(result.Changes), result.LastInsertID})
}

func (h *host) sqlDone(do func() *abi.Error) any {
	if h.SQL == nil {
		return failure(errNoDatabase)
	}
	if err := do(); err != nil {
		return failure(err)
	}
	return component.OK(nil)
}

// Cases of database.value.
const (
	sqlNull = iota
	sqlInteger
	sqlReal
	sqlText
	sqlBlob
)

// sqlArgs returns a list<value> as values of SQL.
func sqlArgs(parameters []any) []any {
	args := make([]any, len(parameters))
	for i := range parameters {
		if v := arg[component.Case](parameters, i); v.Number != sqlNull {
			args[i] = v.Value
		}
	}
	return args
}

// sqlValue returns a value of SQL as a value of the guest. Text is UTF-8.
func sqlValue(v any) component.Case {
	switch v := v.(type) {
	case int64:
		return component.Case{Number: sqlInteger, Value: v}
	case float64:
		return component.Case{Number: sqlReal, Value: v}
	case []byte:
		return component.Case{Number: sqlBlob, Value: append([]byte{}, v...)}
	case string:
		return component.Case{Number: sqlText, Value: v}
	}
	return component.Case{Number: sqlNull}
}

// errNoCommands is the error of a plugin without the permission exec.
var errNoCommands = &abi.Error{Code: abi.CodeNotGranted, Message: "the plugin has no grant for commands: ask for it " +
	"in the manifest's permissions.exec and have the plugin approved"}

// runCommand is commands.run.
func (h *host) runCommand(c caller, command component.Case, options []any) any {
	if h.Exec == nil {
		return failure(errNoCommands)
	}
	request := new(abi.ExecRequest)
	if command.Number == 0 {
		for i, list := 0, arg[[]any]([]any{command.Value}, 0); i < len(list); i++ {
			request.Argv = append(request.Argv, arg[string](list, i))
		}
	} else {
		request.Line = text(command)
	}
	if cwd := arg[component.Case](options, 0); cwd.Number != 0 {
		request.Cwd = text(cwd)
	}
	if timeout := arg[component.Case](options, 1); timeout.Number != 0 {
		request.TimeoutMS = int64(max(1, arg[uint64]([]any{timeout.Value}, 0)))
	}
	stdout, stderr, exit := h.Exec.Run(c.ctx, c.Call, request)
	if exit.Error != nil {
		return failure(exit.Error)
	}
	code, signal, stopped := component.None, component.None, component.None
	if exit.ExitCode >= 0 {
		code = component.Some(int64(min(exit.ExitCode, math.MaxInt32)))
	}
	if exit.Signal != "" {
		signal = component.Some(exit.Signal)
	}
	if exit.Stopped != "" {
		stopped = component.Some(exit.Stopped)
	}
	return component.OK([]any{code, signal, stopped, texts(exit.Cut), stdout, stderr})
}

// errNoTools is the error of a plugin without the permission tools.
var errNoTools = &abi.Error{Code: abi.CodeNotGranted,
	Message: "the plugin has no grant for other tools: ask for it in " +
		"the manifest's permissions.tools and have the plugin approved"}

// callTools is calls.call and calls.call-all.
func (h *host) callTools(c caller, requests []any) []any {
	results := make([]any, len(requests))
	calls := make([]*abi.ToolCall, len(requests))
	for i := range requests {
		request := arg[[]any](requests, i)
		calls[i] = &abi.ToolCall{Name: arg[string](request, 0), Arguments: json.RawMessage(arg[string](request, 1))}
		results[i] = failure(errNoTools)
	}
	if h.Tools == nil {
		return results
	}
	for i, end := range h.Tools.CallAll(c.ctx, c.Call, calls, h.Memory) {
		results[i] = toolResult(end)
	}
	return results
}

func toolResult(end *abi.ToolEnd) component.Case {
	if end.Error != nil {
		return failure(end.Error)
	}
	structured := component.None
	if len(end.StructuredContent) > 0 {
		structured = component.Some(string(end.StructuredContent))
	}
	content, err := json.Marshal(append([]abi.ToolContent{}, end.Content...))
	if err != nil {
		return failure(&abi.Error{Code: abi.CodeInternal, Message: err.Error()})
	}
	return component.OK([]any{structured, string(content)})
}

// findTools is calls.find.
func (h *host) findTools(c caller, query string, limit uint64) any {
	return h.listTools(c, query, limit, func(t *abi.ListedTool) any {
		output := component.None
		if len(t.OutputSchema) > 0 {
			output = component.Some(string(t.OutputSchema))
		}
		return []any{t.Name, t.Plugin, t.Title, t.Description, string(t.InputSchema), output, t.ReadOnly}
	})
}

// declareTools is calls.declare.
func (h *host) declareTools(c caller, query string, limit uint64) any {
	return h.listTools(c, query, limit, func(t *abi.ListedTool) any { return t.Declaration })
}

// listTools returns what is made of each tool that matches a query.
func (h *host) listTools(c caller, query string, limit uint64, of func(*abi.ListedTool) any) any {
	if h.Tools == nil {
		return failure(errNoTools)
	}
	list := h.Tools.List(c.Call, &abi.ToolQuery{Query: query, Limit: int(limit)})
	if list.Error != nil {
		return failure(list.Error)
	}
	found := make([]any, len(list.Tools))
	for i := range list.Tools {
		found[i] = of(&list.Tools[i])
	}
	return component.OK(found)
}
