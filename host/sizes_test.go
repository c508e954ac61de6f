package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileSizes drops in plugins that cannot start within their limits. Nobody is asked for a consent, until the
// limits are large enough.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for file, wasm := range map[string][]byte{
		"memory.wasm": guesttest.Invalid()["4 GiB of memory"](),
		"tables.wasm": guesttest.Oversized()["100 tables of a million elements"](),
		"large.wasm":  guesttest.Assemble(65, nil),
	} {
		name := strings.TrimSuffix(file, ".wasm")
		text := "name: " + name + `
version: 1.0.0
description: {en: Is too large., ja: 大きすぎます。}
tools:
- {name: run-` + name + `, description: {en: Runs., ja: 動く。}, inputSchema: {type: object, additionalProperties: false}}
`
		if packed, err := wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte(text)}); err == nil {
			wasm = packed
		}
		w.put(file, wasm)
	}
	theft, err := os.ReadFile(filepath.Join("sandbox", "testdata", "components", "theft.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	w.put("theft.wasm", theft)
	w.load()
	w.expect("memory.wasm", host.Broken, "starts with 4096 MiB of linear memory, and limits.memory is 64 MiB")
	w.expect("tables.wasm", host.Broken, "elements in its tables, and at most 1048576 are supported")
	w.expect("theft.wasm", host.Broken, "a name that is reserved")
	w.expect("large.wasm", host.Broken, "starts with 65 MiB of linear memory")
	if err := w.reconfigure(func(o *host.Options) { o.Limits.Memory = 128 << 20 }); err != nil {
		t.Fatal(err)
	}
	w.expect("large.wasm", host.Pending, "hako plugin approve large")
	w.approve("large.wasm", nil)
	w.load()
	w.expect("large.wasm", host.Active, "")
	// Its entry point returns no result, which only the compiler finds.
	if got, err := w.call("run-large", `{}`); err != nil || !strings.Contains(got, "plugin large cannot be used: compile") {
		t.Errorf("%s, %v", got, err)
	}
}
