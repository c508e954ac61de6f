package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/wasmfile"
)

const tinyManifest = `name: tiny
version: 1.0.0
description: Does nothing.
license: Apache-2.0
tools: [{name: tiny, description: Does nothing., inputSchema: {type: object}}]
`

// tiny is a folder with a Go program, which needs no PDK to be compiled.
func tiny(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	put(t, filepath.Join(dir, "go.mod"), []byte("module example.com/tiny\n\ngo 1.26\n"))
	put(t, filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"))
	for name, text := range files {
		put(t, filepath.Join(dir, name), []byte(text))
	}
	return dir
}

func TestPluginBuild(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		args  []string
		out   string
	}{
		"manifest.yaml": {map[string]string{"manifest.yaml": tinyManifest}, nil, "dist/tiny.wasm"},
		"by name":       {map[string]string{"tiny.yaml": tinyManifest, "recordings.json": "{}"}, nil, "dist/tiny.wasm"},
		"flags": {map[string]string{"other/m.yaml": tinyManifest}, []string{"--manifest", "other/m.yaml", "-o",
			"here.wasm"}, "here.wasm"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tiny(t, test.files)
			out := filepath.Join(dir, filepath.FromSlash(test.out))
			invoke(t, dir, append([]string{"plugin", "build", "."}, test.args...)...).want(t, exitFailed, out,
				"exports no hako_abi_1: build it with a hako PDK")
			wasm, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			module, err := wasmfile.Read(wasm)
			if err != nil {
				t.Fatal(err)
			}
			if string(module.Manifest) != tinyManifest || string(module.Recordings) != test.files["recordings.json"] {
				t.Errorf("embedded are %q and %q", module.Manifest, module.Recordings)
			}
		})
	}
}

func TestPluginBuildFails(t *testing.T) {
	t.Parallel()
	invoke(t, tiny(t, nil), "plugin", "build", ".").want(t, exitUsage, "there is no manifest", "manifest.yaml and ",
		"tiny.yaml")
	invoke(t, tiny(t, map[string]string{"manifest.yaml": "name: tiny\nverion: 1.0.0\n"}), "plugin", "build", ".").
		want(t, exitUsage, "manifest.yaml", "2:1", `did you mean "version"?`)
	invoke(t, tiny(t, map[string]string{"manifest.yaml": tinyManifest,
		"main.go": "package main\n\nfunc main() { x }\n"}), "plugin", "build", ".").
		want(t, exitUsage, "undefined: x")
}

func TestPluginPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "bare.wasm"), module)
	put(t, filepath.Join(dir, "text.wasm"), []byte("text"))
	put(t, filepath.Join(dir, "tiny.yaml"), []byte(tinyManifest))
	put(t, filepath.Join(dir, "bad.yaml"), []byte("name: Tiny\n"))
	invoke(t, dir, "plugin", "pack", "bare.wasm", "tiny.yaml", "-o", "packed.wasm").want(t, exitOK,
		filepath.Join(dir, "packed.wasm"))
	invoke(t, dir, "plugin", "inspect", "packed.wasm").want(t, exitOK, "tiny 1.0.0")
	invoke(t, dir, "plugin", "inspect", "bare.wasm").want(t, exitUsage, "no manifest")
	invoke(t, dir, "plugin", "pack", "bare.wasm", "tiny.yaml").want(t, exitOK)
	invoke(t, dir, "plugin", "inspect", "bare.wasm").want(t, exitOK, "tiny 1.0.0")
	invoke(t, dir, "plugin", "pack", "text.wasm", "tiny.yaml").want(t, exitUsage, "text.wasm", "not a Wasm module")
	invoke(t, dir, "plugin", "pack", "bare.wasm", "bad.yaml").want(t, exitUsage, "bad.yaml", "version")
	invoke(t, dir, "plugin", "pack", "bare.wasm", "nothing.yaml").want(t, exitUsage, "nothing.yaml")
	invoke(t, dir, "plugin", "pack", "nothing.wasm", "tiny.yaml").want(t, exitUsage, "nothing.wasm")
	// A module that imports alloc: () -> () from Extism. Its manifest only grants.
	put(t, filepath.Join(dir, "extism.wasm"),
		[]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x19\x01\x0fextism:host/env\x05alloc\x00\x00"))
	put(t, filepath.Join(dir, "grants.yaml"), []byte("name: tiny\nversion: 1.0.0\n"))
	invoke(t, dir, "plugin", "pack", "extism.wasm", "tiny.yaml").want(t, exitUsage, "asked for what it offers")
	invoke(t, dir, "plugin", "pack", "extism.wasm", "grants.yaml").want(t, exitOK)
	invoke(t, dir, "plugin", "inspect", "extism.wasm").want(t, exitUsage, "exports neither describe and call nor list_tools")
	invoke(t, dir, "plugin", "pack", "bare.wasm", "grants.yaml").want(t, exitUsage, "offers nothing")
}
