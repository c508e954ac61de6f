package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// referenceCommand is a command of a .wast file as `wasm-tools json-from-wast` writes it.
type referenceCommand struct {
	Type     string
	Line     int
	Filename string
	Kind     string `json:"module_type"`
	Text     string
	// Name is that of a module, Module that of which Instance is an instance.
	Name, Instance, Module string
	Action                 struct {
		Module, Field string
		Args          []referenceValue
	}
	Expected []referenceValue
}

type referenceValue struct {
	Type  string
	Value json.RawMessage
}

// TestReference runs the tests of the Component Model's repository (its folder test) if HAKO_COMPONENT_TESTS names a
// folder with what json-from-wast made of them.
func TestReference(t *testing.T) {
	folder := os.Getenv("HAKO_COMPONENT_TESTS")
	if folder == "" {
		t.Skip("HAKO_COMPONENT_TESTS names no folder")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	total := referenceResult{outOfScope: map[string]int{}}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script struct{ Commands []referenceCommand }
		if err := json.Unmarshal(data, &script); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s := &referenceScript{t: t, engine: engine, folder: folder, name: strings.TrimSuffix(filepath.Base(file), ".json"),
			total: &total, modules: map[string]*referenceModule{}, instances: map[string]*referenceInstance{}}
		for _, command := range script.Commands {
			s.run(command)
		}
		s.finish()
	}
	t.Logf("passed %d, failed %d", total.passed, total.failed)
	for _, reason := range slices.Sorted(maps.Keys(total.outOfScope)) {
		t.Logf("out of scope: %d, %s", total.outOfScope[reason], reason)
	}
}

type referenceResult struct {
	passed, failed int
	outOfScope     map[string]int
}

// referenceScript is one .wast file.
type referenceScript struct {
	t            *testing.T
	engine       *sandbox.Engine
	folder, name string
	total        *referenceResult
	modules      map[string]*referenceModule
	module       *referenceModule // the last one
	instances    map[string]*referenceInstance
	instance     *referenceInstance // the last one
	all          []*referenceInstance
}

type referenceModule struct {
	wasm      []byte
	component *component.Component
	err       error
}

// referenceInstance is an instance with the calls of it. They are made at the end, in one call of the sandbox, since
// the sandbox gives each call a clean instance.
type referenceInstance struct {
	module *referenceModule
	line   int
	calls  []referenceCommand
}

func (s *referenceScript) result(line int, failure, outOfScope string) {
	switch {
	case outOfScope != "":
		s.total.outOfScope[outOfScope]++
	case failure != "":
		s.total.failed++
		s.t.Errorf("%s:%d: %s", s.name, line, failure)
	default:
		s.total.passed++
	}
}

func (s *referenceScript) run(command referenceCommand) {
	if command.Kind == "text" {
		s.result(command.Line, "", "text format")
		return
	}
	switch command.Type {
	case "module", "module_definition":
		m := s.load(command)
		s.result(command.Line, errorText(m.err), m.outOfScope())
		s.module = m
		if command.Name != "" {
			s.modules[command.Name] = m
		}
		if command.Type == "module" {
			s.instantiate(command.Line, command.Name, m)
		}
	case "module_instance":
		m := s.module
		if command.Module != "" {
			m = s.modules[command.Module]
		}
		s.instantiate(command.Line, command.Instance, m)
	case "assert_invalid", "assert_malformed":
		m := s.load(command)
		if m.err != nil {
			s.result(command.Line, "", "")
			break
		}
		reason := ""
		for text, rule := range notValidated {
			if strings.Contains(command.Text, text) {
				reason = rule
			}
		}
		s.result(command.Line, command.Type+" is accepted: "+command.Text, reason)
	case "assert_uninstantiable":
		m := s.load(command)
		s.result(command.Line, "not run", asynchronous(m.component))
	case "assert_return", "assert_trap", "action":
		i := s.instance
		if command.Action.Module != "" {
			i = s.instances[command.Action.Module]
		}
		i.calls = append(i.calls, command)
	default:
		s.t.Fatalf("%s:%d: unknown command %s", s.name, command.Line, command.Type)
	}
}

// notValidated are rules that Decode does not enforce, by what the assertion says.
var notValidated = map[string]string{
	"type mismatch": "bodies of core functions: the runtime validates them",
}

func (s *referenceScript) load(command referenceCommand) *referenceModule {
	wasm, err := os.ReadFile(filepath.Join(s.folder, command.Filename))
	if err != nil {
		s.t.Fatal(err)
	}
	m := &referenceModule{wasm: wasm}
	m.component, m.err = component.Decode(wasm)
	return m
}

func (s *referenceScript) instantiate(line int, name string, m *referenceModule) {
	s.instance = &referenceInstance{module: m, line: line}
	s.all = append(s.all, s.instance)
	s.instances[name] = s.instance
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// outOfScope returns the feature of a component that hako does not have.
func (m *referenceModule) outOfScope() string {
	if m.err != nil {
		if strings.Contains(m.err.Error(), "GC proposal") {
			return "core types of the GC proposal"
		}
		return ""
	}
	return ""
}

// finish runs the instances.
func (s *referenceScript) finish() {
	for _, i := range s.all {
		if i.module.err != nil {
			continue
		}
		reason := asynchronous(i.module.component)
		if reason != "" {
			for _, call := range append(i.calls, referenceCommand{Line: i.line}) {
				s.result(call.Line, "", reason)
			}
			continue
		}
		s.runInstance(i)
	}
}

// asynchronous returns the feature of WASI 0.3 that a component uses.
func asynchronous(c *component.Component) (reason string) {
	for _, definition := range c.Definitions {
		reason := ""
		switch d := definition.(type) {
		case *component.Builtin:
			if strings.HasPrefix(d.Name, "thread.") {
				return "threads: " + d.Name
			} else if !strings.HasPrefix(d.Name, "resource.") {
				reason = "async: " + d.Name
			}
		case *component.Lift:
			if d.Options.Async || d.Type.Async {
				reason = "async: lift"
			}
		case *component.Lower:
			if d.Options.Async || d.Type.Async {
				reason = "async: lower"
			}
		case *component.Nested:
			reason = asynchronous(d.Component)
		}
		if reason != "" {
			return reason
		}
	}
	return ""
}

// scriptAdapter runs the calls of an instance in a call of the sandbox.
type scriptAdapter struct {
	run func(ctx context.Context, guest *sandbox.Guest)
}

func (scriptAdapter) Start(context.Context, *sandbox.Guest) error { return nil }

func (c scriptAdapter) Serve(ctx context.Context, guest *sandbox.Guest, _ *abi.Request) (*abi.Response, error) {
	c.run(ctx, guest)
	return &abi.Response{}, nil
}

// lacks are the features that the runtime does not have, by what its errors say.
var lacks = map[string]string{
	"memories":   "several memories in a core module",
	"section 13": "exceptions in core modules",
}

func (s *referenceScript) runInstance(i *referenceInstance) {
	started := false
	adapter := scriptAdapter{func(ctx context.Context, guest *sandbox.Guest) {
		started = true
		s.result(i.line, "", "")
		for _, call := range i.calls {
			s.result(call.Line, runCall(ctx, guest, call), "")
		}
	}}
	plugin := s.engine.Load(sandbox.Spec{Name: "reference", Wasm: func() ([]byte, error) { return i.module.wasm, nil },
		Adapter: adapter, Limits: manifest.Limits{Time: time.Minute}})
	defer func() { _ = plugin.Close() }()
	_, err := plugin.Call(s.t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "script"}})
	if started {
		return
	}
	if err == nil {
		err = errors.New("the script was not run")
	}
	outOfScope := ""
	for text, reason := range lacks {
		if strings.Contains(err.Error(), text) {
			outOfScope = reason
		}
	}
	for _, call := range append(i.calls, referenceCommand{Line: i.line}) {
		s.result(call.Line, "it does not start: "+err.Error(), outOfScope)
	}
}

// runCall makes a call and compares its outcome with the expected one.
func runCall(ctx context.Context, guest *sandbox.Guest, call referenceCommand) (failure string) {
	exports := guest.Component().Exports
	at := slices.IndexFunc(exports, func(e component.Extern) bool { return e.Name == call.Action.Field })
	if at < 0 || exports[at].Func == nil {
		return "there is no function " + call.Action.Field
	}
	t := exports[at].Func
	args, err := elements(call.Action.Args, func(i int) *component.Type { return t.Params[i].Type })
	if err != nil {
		return err.Error()
	}
	result, err := guest.Call(ctx, call.Action.Field, args)
	switch {
	case call.Type == "assert_trap" && err == nil:
		return fmt.Sprintf("%s returns %v, want a trap: %s", call.Action.Field, result, call.Text)
	case call.Type == "assert_trap":
		return ""
	case err != nil:
		return call.Action.Field + ": " + err.Error()
	case len(call.Expected) == 0:
		return ""
	}
	want, err := call.Expected[0].of(t.Result)
	if err != nil {
		return err.Error()
	}
	if !reflect.DeepEqual(result, want) {
		return fmt.Sprintf("%s returns %#v, want %#v", call.Action.Field, result, want)
	}
	return ""
}

// of returns the Go value of a type that package component describes.
func (v *referenceValue) of(t *component.Type) (any, error) {
	if t == nil {
		return nil, errors.New("there is no result")
	}
	var text string
	var list []referenceValue
	var names []string
	switch t.Kind {
	case component.KindBool:
		return string(v.Value) == "true", nil
	case component.KindString:
		return text, json.Unmarshal(v.Value, &text)
	case component.KindChar:
		err := json.Unmarshal(v.Value, &text)
		return []rune(text)[0], err
	case component.KindU8, component.KindU16, component.KindU32, component.KindU64, component.KindF32, component.KindF64:
		if err := json.Unmarshal(v.Value, &text); err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(text, 10, 64)
		switch t.Kind {
		case component.KindF32:
			return math.Float32frombits(uint32(n)), err
		case component.KindF64:
			return math.Float64frombits(n), err
		}
		return n, err
	case component.KindS8, component.KindS16, component.KindS32, component.KindS64:
		if err := json.Unmarshal(v.Value, &text); err != nil {
			return nil, err
		}
		return strconv.ParseInt(text, 10, 64)
	case component.KindList, component.KindTuple:
		if err := json.Unmarshal(v.Value, &list); err != nil {
			return nil, err
		}
		if t.Kind == component.KindList && t.Elem.Kind == component.KindU8 {
			return byteList(list)
		}
		return elements(list, func(i int) *component.Type {
			if t.Kind == component.KindTuple {
				return t.Fields[i].Type
			}
			return t.Elem
		})
	case component.KindRecord:
		var fields [][2]json.RawMessage
		if err := json.Unmarshal(v.Value, &fields); err != nil {
			return nil, err
		}
		list = make([]referenceValue, len(fields))
		for i, f := range fields {
			if err := json.Unmarshal(f[1], &list[i]); err != nil {
				return nil, err
			}
		}
		return elements(list, func(i int) *component.Type { return t.Fields[i].Type })
	case component.KindVariant:
		var variant struct {
			Case    string
			Payload *referenceValue
		}
		if err := json.Unmarshal(v.Value, &variant); err != nil {
			return nil, err
		}
		n := label(t, variant.Case)
		return v.caseOf(n, variant.Payload, t.Fields[n].Type)
	case component.KindEnum:
		err := json.Unmarshal(v.Value, &text)
		return component.Case{Number: uint32(label(t, text))}, err
	case component.KindOption:
		var some *referenceValue
		if err := json.Unmarshal(v.Value, &some); err != nil || some == nil {
			return component.None, err
		}
		return v.caseOf(1, some, t.Elem)
	case component.KindResult:
		var cases map[string]*referenceValue
		if err := json.Unmarshal(v.Value, &cases); err != nil {
			return nil, err
		}
		if failed, ok := cases["Err"]; ok {
			return v.caseOf(1, failed, t.Err)
		}
		return v.caseOf(0, cases["Ok"], t.Elem)
	case component.KindFlags:
		err := json.Unmarshal(v.Value, &names)
		var flags uint32
		for _, name := range names {
			flags |= 1 << label(t, name)
		}
		return flags, err
	}
	return nil, fmt.Errorf("no values of type %s", t)
}

func label(t *component.Type, name string) int {
	return slices.IndexFunc(t.Fields, func(f component.Field) bool { return f.Name == name })
}

func (*referenceValue) caseOf(n int, payload *referenceValue, t *component.Type) (any, error) {
	if payload == nil {
		return component.Case{Number: uint32(n)}, nil
	}
	value, err := payload.of(t)
	return component.Case{Number: uint32(n), Value: value}, err
}

func byteList(list []referenceValue) (any, error) {
	bytes := make([]byte, len(list))
	for i := range list {
		n, err := list[i].of(&component.Type{Kind: component.KindU8})
		if err != nil {
			return nil, err
		}
		bytes[i] = byte(n.(uint64))
	}
	return bytes, nil
}

// elements returns the elements of a list, tuple or record.
func elements(list []referenceValue, typeOf func(i int) *component.Type) (out []any, err error) {
	out = make([]any, len(list))
	for i := range list {
		if out[i], err = list[i].of(typeOf(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
