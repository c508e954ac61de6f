package tool

import (
	"errors"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/wasm/component"
)

// TestEmptyArguments: what a function is called with to see whether it is there has a form that decodes.
func TestEmptyArguments(t *testing.T) {
	t.Parallel()
	typed := func(kind component.Kind) *component.Type { return &component.Type{Kind: kind} }
	text, number := typed(component.KindString), typed(component.KindS32)
	f := &component.Func{}
	for name, parameter := range map[string]*component.Type{
		"bool": typed(component.KindBool), "text": text, "char": typed(component.KindChar), "u64": typed(component.KindU64),
		"float": typed(component.KindF64), "list": {Kind: component.KindList, Elem: number},
		"bytes":   {Kind: component.KindList, Elem: typed(component.KindU8)},
		"option":  {Kind: component.KindOption, Elem: text},
		"tuple":   {Kind: component.KindTuple, Fields: []component.Field{{Type: text}, {Type: number}}},
		"record":  {Kind: component.KindRecord, Fields: []component.Field{{Name: "a", Type: text}, {Name: "b", Type: number}}},
		"enum":    {Kind: component.KindEnum, Fields: []component.Field{{Name: "red"}}},
		"flags":   {Kind: component.KindFlags, Fields: []component.Field{{Name: "read"}}},
		"variant": {Kind: component.KindVariant, Fields: []component.Field{{Name: "circle", Type: number}, {Name: "none"}}},
		"bare":    {Kind: component.KindVariant, Fields: []component.Field{{Name: "none"}}},
		"result":  {Kind: component.KindResult, Elem: text, Err: text},
		"nothing": {Kind: component.KindResult},
		"map":     {Kind: component.KindMap, Elem: text, Err: number},
		"pairs":   {Kind: component.KindMap, Elem: number, Err: number},
	} {
		f.Params = []component.Field{{Name: name, Type: parameter}}
		if _, err := decodeArguments(f, emptyArguments(f)); err != nil {
			t.Errorf("%s: %s: %v", name, emptyArguments(f), err)
		}
	}
}

func TestIsMissing(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		"stopped: function 'greet' not found": true,
		"stopped: city 'Oz' is not found":     false,
		"exited: function 'greet' not found":  false,
	} {
		if got := isMissing(&catalog.StackError{Err: &catalog.GuestError{Plugin: "p", Reason: reason}}); got != want {
			t.Errorf("%s: %t", reason, got)
		}
	}
	if isMissing(nil) || isMissing(errors.New("stopped: function 'greet' not found")) {
		t.Error("an error of the host counts")
	}
}

// TestBuildStepsAreNoChoice: what the toolchain exports for itself is not among the functions that an author may name.
func TestBuildStepsAreNoChoice(t *testing.T) {
	t.Parallel()
	var params []component.Field
	for _, name := range buildSteps["init"] {
		params = append(params, component.Field{Name: name, Type: &component.Type{Kind: component.KindBool}})
	}
	functions := Functions(&component.Component{Exports: []component.Extern{
		{Name: "init", Sort: component.SortFunc, Func: &component.Func{Params: params}},
		{Name: "greet", Sort: component.SortFunc, Func: &component.Func{}},
	}})
	if got := exports(functions); got != "greet" || !isUnchecked(functions) {
		t.Errorf("exports = %q, unchecked = %t", got, isUnchecked(functions))
	}
}
