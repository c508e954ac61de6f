package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// shippedWasm returns the file of a shipped plugin.
func shippedWasm(t *testing.T, name string) []byte {
	t.Helper()
	needsPlugins(t)
	for _, p := range shippedPlugins() {
		if p.Name() == name {
			return must(p.Wasm())
		}
	}
	t.Fatalf("no plugin %s is shipped", name)
	return nil
}

// TestPublishedFolder: three of the largest plugins are published and signed, found in an index, installed, and installed
// in a second folder by the lock file; there they are updated and rolled back.
func TestPublishedFolder(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	author, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	keyPair(t, author)
	names := []string{"hr", "sheets", "tasks"}
	index := []string{"plugin", "index", "index.yaml"}
	push := func(name string) {
		t.Helper()
		invoke(t, author, "plugin", "push", at.Host+"/tools/"+name, name+".wasm", "--sign", "cosign.key").
			want(t, exitOK, name+" 0.", "is published", "signed with the key sha256:", "a software bill of materials is attached")
	}
	for _, name := range names {
		put(t, filepath.Join(author, name+".wasm"), shippedWasm(t, name))
		push(name)
		index = append(index, "oci://"+at.Host+"/tools/"+name)
	}
	invoke(t, author, index...).want(t, exitOK, "lists 3 plugins")
	configuration := "registries: {\"" + at.Host + "\": {}}\nplugins: [plugins]\nshipped: {enabled: false}\nsignatures: {required: true}\nindex: {plugins: [index.yaml]}\n" +
		"signers: {acme: {for: [" + at.Host + "/tools/*], key: cosign.pub}}\n"
	for _, dir := range []string{first, second} {
		put(t, filepath.Join(dir, "hako.yaml"), []byte(configuration))
		put(t, filepath.Join(dir, "plugins", "README"), nil)
		for _, file := range []string{"cosign.pub", "index.yaml"} {
			put(t, filepath.Join(dir, file), must(os.ReadFile(filepath.Join(author, file))))
		}
	}
	invoke(t, first, "plugin", "search", "勤怠").want(t, exitOK, "hr 0.", "hako plugin add oci://"+at.Host+"/tools/hr:0.")
	for _, name := range names {
		invoke(t, first, "plugin", "add", name).want(t, exitOK, name+" 0.", "signed with the key sha256:", "Next: hako plugin approve")
	}

	put(t, filepath.Join(second, lock.FileName), must(os.ReadFile(filepath.Join(first, lock.FileName))))
	invoke(t, second, "plugin", "sync").want(t, exitOK, "hr 0.", "sheets 0.", "tasks 0.", "signed with the key sha256:")
	invoke(t, second, "plugin", "sync", "--check").want(t, exitOK, "matches the lock file")
	same := func(name string, want bool) {
		t.Helper()
		file := filepath.Join("plugins", name+".wasm")
		if got := bytes.Equal(must(os.ReadFile(filepath.Join(first, file))), must(os.ReadFile(filepath.Join(second, file)))); got != want {
			t.Errorf("%s is the same: %v", name, got)
		}
	}
	for _, name := range names {
		same(name, true)
	}

	wasm := shippedWasm(t, "tasks")
	text, _ := manifest.Inside(wasm)
	newer := bytes.Replace(text, []byte("\nversion: 0.1.0\n"), []byte("\nversion: 0.2.0\n"), 1)
	put(t, filepath.Join(author, "tasks.wasm"), must(wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: newer})))
	push("tasks")
	invoke(t, second, "plugin", "outdated").want(t, exitOK, "tasks 0.1.0: 0.2.0")
	invoke(t, second, "plugin", "update").want(t, exitOK, "tasks 0.2.0 instead of 0.1.0", "= It asks for the same permissions")
	same("tasks", false)
	invoke(t, second, "plugin", "rollback", "tasks").want(t, exitOK, "! It is a downgrade: 0.1.0 is older than 0.2.0")
	same("tasks", true)
	invoke(t, second, "plugin", "list").want(t, exitOK, "tasks", "0.1.0", "pending", "signed with the key sha256:")
}

// TestPluginIndex: an index is written of files, with paths below it, and checked.
func TestPluginIndex(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "cache: cache\nindex: {plugins: [index.yaml]}\n")
	put(t, filepath.Join(dir, "plugins", "other.wasm"), probePlugin(t, "name: probe\n", "name: other\n"))
	invoke(t, dir, "plugin", "index", "index.yaml", "plugins").want(t, exitOK, "index.yaml lists 2 plugins")
	before := must(os.ReadFile(filepath.Join(dir, "index.yaml")))
	invoke(t, dir, "plugin", "search", "probe_echo", "other").want(t, exitOK, "other 1.0.0",
		"hako plugin add "+filepath.Join(dir, "plugins", "other.wasm")+" --digest sha256:")
	invoke(t, dir, "plugin", "index", "index.yaml", "plugins/other.wasm", "plugins/probe.wasm").want(t, exitOK)
	if after := must(os.ReadFile(filepath.Join(dir, "index.yaml"))); !bytes.Equal(before, after) {
		t.Errorf("the same plugins make another index:\n%s", after)
	}
	invoke(t, dir, "plugin", "index", "index.yaml").want(t, exitOK, "is a valid index")
	invoke(t, dir, "plugin", "index", "index.yaml", "plugins", "plugins/probe.wasm").
		want(t, exitUsage, "another plugin of that name")
	invoke(t, dir, "plugin", "index", "sub/index.yaml", "plugins").want(t, exitUsage, "is not below")
	put(t, filepath.Join(dir, "plain.wasm"), []byte("\x00asm\x01\x00\x00\x00"))
	invoke(t, dir, "plugin", "index", "index.yaml", "plain.wasm").want(t, exitUsage, "it has no manifest")
	put(t, filepath.Join(dir, "broken.yaml"), []byte("plugins: [{name: A, reference: a.wasm}]"))
	invoke(t, dir, "plugin", "index", "broken.yaml").want(t, exitUsage, "line 1: A: the name must be")
	invoke(t, dir, "plugin", "index", "missing.yaml").want(t, exitUsage, "missing.yaml")
}
