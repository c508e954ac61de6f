package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// failing is a small guest of ABI 1 that fails every call.
const failing = "\x00asm\x01\x00\x00\x00\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f\x03\x03\x02\x00\x01" +
	"\x05\x03\x01\x00\x01\x07\x23\x03\x06memory\x02\x00\x0ahako_abi_1\x00\x00\x09hako_call\x00\x01" +
	"\x0a\x09\x02\x02\x00\x0b\x04\x00\x41\x01\x0b"

// TestRefusedModule: a plugin that the compiler refused is explained by "hako plugin check" and "hako doctor".
func TestRefusedModule(t *testing.T) {
	dir := workplace(t, "")
	t.Setenv("HAKO_CACHE", filepath.Join(dir, "cache"))
	text, err := os.ReadFile("testdata/probe/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmfile.Embed([]byte(failing), map[string][]byte{abi.ManifestSection: text})
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"), wasm)
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	invoke(t, dir, "plugin", "check", "plugins/probe.wasm").want(t, exitFailed, "cannot be asked for its handlers")
	serve(t, dir) // it compiles the plugin
	var compiled []string
	if !testwait.Until(t, func() bool {
		compiled, _ = filepath.Glob(filepath.Join(dir, "cache", "compiled", "images", "*.code"))
		return len(compiled) == 1
	}) {
		t.Fatal(compiled)
	}
	if o := invoke(t, dir, "doctor"); strings.Contains(o.stdout, "compiled") {
		t.Errorf("before: %s", o)
	}
	note := strings.TrimSuffix(compiled[0], ".code") + ".refused"
	put(t, note, []byte("it took more than 2048 MiB of memory\n"))
	if err := os.Remove(compiled[0]); err != nil {
		t.Fatal(err)
	}
	problem := "the plugin is not compiled, because the compiler was ended: it took more than 2048 MiB of memory, so its " +
		"calls are interpreted"
	remedy := "remove " + note + ", and the next start compiles it again"
	invoke(t, dir, "plugin", "check", "plugins/probe.wasm").want(t, exitFailed, "warning: "+problem, remedy)
	invoke(t, dir, "doctor").want(t, exitOK, "warning  plugin probe: "+problem, "-> ", remedy)
}
