package link_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// exportsOf returns the core modules of a component by their IDs, with their exports. It reports false if one cannot be
// read: then the sandbox refuses the component before it is linked.
func exportsOf(c *component.Component) (modules []link.Module, ok bool) {
	for _, m := range c.CoreModules() {
		exports, err := rewrite.Exports(m.Code)
		if err != nil || rewrite.Check(m.Code) != nil {
			return nil, false
		}
		modules = append(modules, link.Module{Exports: exports, Elements: 1})
	}
	return modules, true
}

// FuzzCompile links components that are valid, whatever their definitions refer to. No guest code runs.
func FuzzCompile(f *testing.F) {
	const most = 1 << 12 // bytes of a seed
	for _, folder := range []string{"../../sandbox/testdata/components", "../component/testdata", os.Getenv("HAKO_COMPONENT_TESTS")} {
		names, _ := filepath.Glob(filepath.Join(folder, "*.wasm"))
		for _, name := range names {
			if wasm, err := os.ReadFile(name); err == nil && len(wasm) < most {
				f.Add(wasm)
			}
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		c, err := component.Decode(wasm)
		if err != nil {
			return
		}
		modules, ok := exportsOf(c)
		if !ok {
			return
		}
		runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
		defer func() {
			if err := runtime.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		program, err := link.Compile(t.Context(), c, &link.Options{Runtime: runtime, Modules: modules,
			Import:  func(string, string) (link.HostFunc, error) { return nil, nil },
			Current: func(context.Context) *link.Instance { return nil }})
		if err != nil {
			return
		}
		if _, err := link.Check(c); err != nil && !strings.Contains(err.Error(), "elements") { // Modules has no tables
			t.Errorf("it is linked, and refused before: %v", err)
		}
		i := program.NewInstance(link.Host{})
		i.Restore(i.Snapshot())
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		if err := program.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
