package manifest_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

func TestCheckImports(t *testing.T) {
	t.Parallel()
	http := manifest.Permissions{HTTP: []manifest.HTTPPermission{{Name: "a"}}}
	for _, c := range []struct {
		name        string
		imports     [][]byte
		permissions manifest.Permissions
		want        string
	}{
		{"core and WASI", [][]byte{wasmtest.Imported("hako:core/1", "take", 0, 2),
			wasmtest.Imported("wasi_snapshot_preview1", "fd_read", 0, 3)}, manifest.Permissions{}, ""},
		{"http with permission", [][]byte{wasmtest.Imported("hako:http/1", "request", 0, 3)}, http, ""},
		{"http without permission", [][]byte{wasmtest.Imported("hako:http/1", "request", 0, 3),
			wasmtest.Imported("hako:http/1", "read", 0, 0)}, manifest.Permissions{},
			`the module imports "hako:http/1", but the manifest does not ask for the permission "http" that links it: add it under permissions, or remove what uses it`},
		{"future version", [][]byte{wasmtest.Imported("hako:http/2", "request", 0, 0)}, http,
			`imports version "2" of "hako:http", and this host has version 1`},
		{"unknown hako module", [][]byte{wasmtest.Imported("hako:gpio/1", "set", 0, 0)}, http,
			`unknown import module "hako:gpio/1": known are hako:core/1, hako:exec/1, hako:http/1, hako:sql/1, hako:tools/1, wasi_snapshot_preview1`},
		{"browser", [][]byte{wasmtest.Imported("gojs", "run", 0, 0)}, http,
			"build for WASI preview 1 (wasip1), not for a browser"},
		{"memory", [][]byte{wasmtest.Imported("hako:core/1", "memory", 2, 0, 1)}, http,
			`imports the memory "memory" from "hako:core/1", which has functions only`},
		{"two", [][]byte{wasmtest.Imported("env", "f", 0, 0), wasmtest.Imported("sys", "f", 0, 0)}, http,
			`unknown import module "sys"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmfile.Read(wasmtest.Module(wasmtest.Types, wasmtest.Section(2, c.imports...)))
			if err != nil {
				t.Fatal(err)
			}
			err = manifest.CheckImports(m, c.permissions)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err != nil && strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("the same import is reported more than once: %v", err)
			}
		})
	}
}
