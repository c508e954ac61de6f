package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/broker/execbroker/confine"
	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/testprogram"
	"github.com/hako-run/hako/pdk/abi"
)

// A component uses its permissions through hako's own WIT packages.
func TestComponentPermissions(t *testing.T) {
	t.Parallel()
	if s := confine.Check(); !s.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands: "+s.Missing())
	}
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "host/component/testdata/permissions.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	const asks = "name: permissions\nversion: 1.0.0\ndescription: d\nlicense: Apache-2.0\n" +
		"tools: [{name: note, description: d, export: note}, {name: run, description: d, export: run}]\npermissions:\n" +
		"  sql: {reason: to keep notes, migrations: [CREATE TABLE notes (text TEXT NOT NULL)]}\n  exec: {reason: to look, programs: [sh, ls]}\n"
	wasm, err = manifest.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte(asks)})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) { o.DataDir = t.TempDir() })
	w.put("permissions.wasm", wasm)
	w.load()
	w.approve("permissions.wasm", nil)
	w.load()
	for _, want := range []string{"1", "2"} {
		if got, err := w.call("note", `{"text":"a"}`); err != nil || !strings.Contains(got, want) {
			t.Errorf("note = %q, %v; want %s", got, err, want)
		}
	}
	if got, err := w.call("run", `{"line":"rm -r /"}`); err != nil || !strings.Contains(got, "not-granted") {
		t.Errorf("run = %q, %v", got, err)
	}
}
