package wasmfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasmfile"
)

func TestABI(t *testing.T) {
	t.Parallel()
	exports := func(entries ...[]byte) []byte {
		return wasmtest.Module(wasmtest.Types, wasmtest.Section(3, []byte{0}, []byte{1}), wasmtest.Memory, wasmtest.Section(7, entries...))
	}
	mem, call := wasmtest.Named("memory", 2, 0), wasmtest.Named("hako_call", 0, 1)
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"several versions", exports(mem, call, wasmtest.Named("hako_abi_1", 0, 0), wasmtest.Named("hako_abi_7", 0, 0)), ""},
		{"future", exports(mem, call, wasmtest.Named("hako_abi_7", 0, 0)),
			"built for ABI 7, and this host speaks ABI 1: update the host"},
		{"past", exports(mem, call, wasmtest.Named("hako_abi_0", 0, 0)),
			"built for ABI 0, and this host speaks ABI 1: rebuild the plugin with a newer PDK"},
		{"odd marker", exports(mem, call, wasmtest.Named("hako_abi_1x", 0, 0)), "exports no hako_abi_1"},
		{"command", exports(mem, wasmtest.Named("_start", 0, 0)),
			"is a command (it exports _start), not a plugin: build it as a library"},
		{"no entry", exports(mem, wasmtest.Named("hako_abi_1", 0, 0)), "must export the function hako_call (i32) -> (i32)"},
		{"entry of another type", exports(mem, wasmtest.Named("hako_abi_1", 0, 0), wasmtest.Named("hako_call", 0, 0)),
			"exports the function hako_call () -> (); ABI 1 wants (i32) -> (i32)"},
		{"marker of another type", exports(mem, call, wasmtest.Named("hako_abi_1", 0, 1)),
			"exports the function hako_abi_1 (i32) -> (i32)"},
		{"initialize of another type", exports(mem, call, wasmtest.Named("hako_abi_1", 0, 0), wasmtest.Named("_initialize", 0, 1)),
			"exports the function _initialize"},
		{"no memory", exports(call, wasmtest.Named("hako_abi_1", 0, 0)), "must export its memory"},
		{"Extism by import", wasmtest.Module(wasmtest.Types, wasmtest.Section(2, wasmtest.Imported("extism:host/env", "length", 0, 0))),
			"speaks the Extism ABI"},
		{"Extism by export", exports(mem, wasmtest.Named("describe", 0, 0), wasmtest.Named("call", 0, 1)), "speaks the Extism ABI"},
		{"nothing", wasmtest.Module(), "exports no hako_abi_1: build it with a hako PDK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmfile.Read(c.wasm)
			if err != nil {
				t.Fatal(err)
			}
			version, err := m.ABI()
			switch {
			case c.want == "" && (version != 1 || err != nil):
				t.Errorf("got %d, %v", version, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case errors.Is(err, wasmfile.ErrExtism) != strings.HasPrefix(c.name, "Extism"):
				t.Errorf("matches ErrExtism: %v", err)
			}
		})
	}
}

func TestAsyncComponentIsRefused(t *testing.T) {
	t.Parallel()
	lift := &component.Lift{Options: component.Options{Async: true}, Type: &component.Func{}}
	nested := &component.Nested{Component: &component.Component{Definitions: []component.Definition{lift}}}
	m := &wasmfile.Module{Component: &component.Component{Definitions: []component.Definition{nested}}}
	if err := m.CheckABI(); err == nil || !strings.Contains(err.Error(), "WASI 0.3") {
		t.Error(err)
	}
}
