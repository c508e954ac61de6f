package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// Connect makes output, logs, progress reports, random draws and paths outside of mounts those of the guest of each call.
func Connect(options *wasi.Options) {
	options.RandomDrawn = func(ctx context.Context) { sandbox.GuestOf(ctx).MarkRandomDrawn() }
	options.Print = func(ctx context.Context, level abi.LogLevel, text []byte) { sandbox.GuestOf(ctx).Print(level, text) }
	options.Log = func(ctx context.Context, level abi.LogLevel, text string) { sandbox.GuestOf(ctx).Log(level, text) }
	options.Outside = func(ctx context.Context, path string) { sandbox.GuestOf(ctx).NoteOutside(path) }
	options.Progress = func(ctx context.Context, p abi.Progress) { sandbox.GuestOf(ctx).ReportProgress(p) }
}

// Handlers returns the tools that the component has code for, or nil where its toolchain has compared the program with
// its WIT. componentize-qjs does not, so Handlers calls each function with empty values: plugin must have no grants.
// It returns ctx's error if ctx ends first.
func (a *Adapter) Handlers(ctx context.Context, plugin *sandbox.Plugin) (*abi.Handlers, error) {
	if !a.unchecked {
		return nil, nil
	}
	var handlers abi.Handlers
	for i := range a.functions {
		f := &a.functions[i]
		_, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: f.Name,
			Arguments: emptyArguments(f.Type)}})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !isMissing(err) {
			handlers.Tools = append(handlers.Tools, f.Name)
		}
	}
	return &handlers, nil
}

// isMissing reports whether a component of componentize-qjs has stopped because the program lacks the function.
func isMissing(err error) bool {
	guest, ok := errors.AsType[*catalog.GuestError](err)
	return ok && strings.HasPrefix(guest.Reason, "stopped: ") && strings.HasSuffix(guest.Reason, "' not found")
}

// isUnchecked reports whether a component may lack the code of functions that it exports: see buildSteps.
func isUnchecked(functions []Function) bool {
	return slices.ContainsFunc(functions, func(f Function) bool { return f.Export == "init" && isBuildStep(&f) })
}

// emptyArguments returns the smallest arguments that a function takes, as JSON.
func emptyArguments(f *component.Func) []byte {
	return []byte(emptyObject(f.Params))
}

func emptyObject(fields []component.Field) string {
	members := make([]string, len(fields))
	for i, f := range fields {
		members[i] = fmt.Sprintf("%q:%s", f.Name, emptyValue(f.Type))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// emptyValue returns JSON of a type: zero, nothing, or the first of several.
func emptyValue(t *component.Type) string {
	switch t.Kind {
	case component.KindBool:
		return "false"
	case component.KindString:
		return `""`
	case component.KindChar:
		return `" "`
	case component.KindEnum:
		return fmt.Sprintf("%q", t.Fields[0].Name)
	case component.KindVariant:
		if first := t.Fields[0]; first.Type != nil {
			return fmt.Sprintf("{%q:%q,%q:%s}", tagKey, first.Name, valKey, emptyValue(first.Type))
		}
		return fmt.Sprintf("{%q:%q}", tagKey, t.Fields[0].Name)
	case component.KindTuple:
		elements := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			elements[i] = emptyValue(f.Type)
		}
		return "[" + strings.Join(elements, ",") + "]"
	case component.KindList, component.KindFlags:
		return "[]"
	case component.KindMap:
		if hasTextKeys(t) {
			return "{}"
		}
		return "[]"
	case component.KindRecord:
		return emptyObject(t.Fields)
	case component.KindResult:
		if t.Elem != nil {
			return fmt.Sprintf("{%q:%s}", okKey, emptyValue(t.Elem))
		}
		return fmt.Sprintf("{%q:null}", okKey)
	case component.KindOption:
		return "null"
	}
	return "0"
}
