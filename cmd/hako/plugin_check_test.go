package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func TestPluginCheck(t *testing.T) {
	t.Parallel()
	probing := "  - name: probe_now\n"
	tests := map[string]struct {
		wasm []byte
		code int
		want []string
	}{
		"warnings": {probePlugin(t), exitOK, []string{"warning: tools[0]: outputSchema is missing"}},
		"a tool without handler": {probePlugin(t, "probe_now", "probe_then"), exitFailed,
			[]string{`error: tools[2]: the plugin has no handler for the tool "probe_then": it has probe_`}},
		"a handler without entry": {probePlugin(t, probing, "  - name: probe_then\n"), exitFailed,
			[]string{`a handler for the tool "probe_now"`}},
		"over-broad": {probePlugin(t, asking(`{http: [{name: all, url: "https://*/", reason: R.}]}`)...),
			exitOK, []string{"every host there is"}},
		"too much memory": {tooLarge(t), exitFailed,
			[]string{"error: it starts with 4096 MiB of linear memory, and limits.memory is 64 MiB"}},
		"not Wasm": {[]byte("text"), exitFailed, []string{"error: ", "not a Wasm module"}},
		"a bad manifest": {probePlugin(t, "inputSchema: {type: object", "inputSchema: {type: objekt"),
			exitFailed, []string{"error: ", "inputSchema"}},
		"two faults": {probePlugin(t, "inputSchema: {type: object", "schema: {type: object"), exitFailed,
			[]string{"probe.wasm: error: manifest:\n", `unknown key "schema"`, "inputSchema: is missing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "dist", "probe.wasm")
			put(t, file, test.wasm)
			o := invoke(t, dir, "plugin", "check", "dist/probe.wasm")
			o.want(t, test.code, append(test.want, file+": ")...)
			if inFolder := invoke(t, dir, "plugin", "check", "."); inFolder.stdout != o.stdout {
				t.Errorf("the folder is checked otherwise: %s", inFolder)
			}
		})
	}
}

// tooLarge returns a plugin that cannot start within its limits.
func tooLarge(t *testing.T) []byte {
	t.Helper()
	manifest := `name: large
version: 1.0.0
description: {en: Is too large., ja: 大きすぎます。}
tools: [{name: run, description: {en: Runs., ja: 動く。}, inputSchema: {type: object, additionalProperties: false}}]
`
	const module = "\x00asm\x01\x00\x00\x00" + "\x05\x05\x01\x00\x80\x80\x04" // (memory 65536)
	wasm, err := wasmfile.Embed([]byte(module), map[string][]byte{abi.ManifestSection: []byte(manifest)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestPluginCheckNothing(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "plugin", "check", ".").want(t, exitUsage, "there is no .wasm file", "hako plugin build")
	o := invoke(t, t.TempDir(), "plugin", "check", "nothing.wasm")
	if o.want(t, exitUsage, "nothing.wasm"); strings.Contains(o.stdout, "object") {
		t.Errorf("got %s", o)
	}
}
