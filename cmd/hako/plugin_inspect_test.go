package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hako-run/hako/host/app/inspect"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "plugin: {probe: {limits: {time: 3s}}}\nlimits: {rate: 9}\n", asking(filesAndHTTP)...)
	invoke(t, dir, "plugin", "inspect", "probe").want(t, exitOK, "probe 1.0.0", "Helps to test.", "Apache-2.0",
		"sha256:", "pending",
		"tool probe_echo", "hako:core/1", "wasi_snapshot_preview1", "because: Looks things up.",
		"base_url (url, default https://example.com/): Where it looks.", "time 3s", "rate 9", "memory 64MiB")
	var report inspect.Report
	if err := json.Unmarshal([]byte(invoke(t, dir, "plugin", "inspect", filepath.Join("plugins", "probe.wasm"), "--json").stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Name != "probe" || report.Limits["time"] != "3s" || len(report.Permissions) != 2 ||
		!slices.Contains(report.Imports, "hako:core/1") {
		t.Errorf("got %+v", report)
	}
}

// TestInspectFile reads a file that is in no folder.
func TestInspectFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "probe.wasm"), probePlugin(t))
	put(t, filepath.Join(dir, "text.wasm"), []byte("text"))
	put(t, filepath.Join(dir, "cut.wasm"), probePlugin(t)[:1000])
	bare, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "bare.wasm"), bare)
	put(t, filepath.Join(dir, "wrong.wasm"), probePlugin(t, "license:", "licence:"))
	invoke(t, dir, "plugin", "inspect", "probe.wasm").want(t, exitOK, "probe 1.0.0", "in none of the plugin folders")
	invoke(t, dir, "plugin", "inspect", "text.wasm").want(t, exitUsage, "text.wasm", "not a Wasm module")
	invoke(t, dir, "plugin", "inspect", "cut.wasm").want(t, exitUsage, "malformed")
	invoke(t, dir, "plugin", "inspect", "bare.wasm").want(t, exitUsage, "has no manifest", "hako plugin pack")
	invoke(t, dir, "plugin", "inspect", "wrong.wasm").want(t, exitUsage, "4:1", `did you mean "license"?`)
	invoke(t, dir, "plugin", "inspect", "nothing").want(t, exitUsage, `unknown plugin "nothing"`)
}
