package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
)

// TestPluginPush publishes a plugin and adds it in another folder, by its version and by its digest.
func TestPluginPush(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	author := workplace(t, "")
	wasm := must(os.ReadFile(filepath.Join(author, "plugins", "probe.wasm")))
	o := invoke(t, author, "plugin", "push", at.Host+"/tools/probe", "probe")
	o.want(t, exitOK, "probe 1.0.0 is published", "software bill of materials", "Next: hako plugin add oci://"+at.Host+"/tools/probe:1.0.0@sha256:")
	_, reference, _ := strings.Cut(strings.TrimSpace(o.stdout), "Next: hako plugin add ")
	for name, from := range map[string]string{"tag": at.Reference("tools/probe", "1.0.0"), "digest": reference} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
		invoke(t, dir, "plugin", "add", from).want(t, exitOK, "probe 1.0.0 is in", "Next: hako plugin approve probe")
		if got := must(os.ReadFile(filepath.Join(dir, "plugins", "probe.wasm"))); !bytes.Equal(got, wasm) {
			t.Errorf("by %s: the file is another", name)
		}
		invoke(t, dir, "audit", "query", "--json").want(t, exitOK, "plugin.add", "oci://"+at.Host+"/tools/probe:1.0.0")
	}

	invoke(t, author, "plugin", "push", at.Host+"/tools/probe", "plugins/probe.wasm").want(t, exitOK, "is published")
	put(t, filepath.Join(author, "dist", "probe.wasm"), probePlugin(t, "It does little.", "It does more."))
	invoke(t, author, "plugin", "push", at.Host+"/tools/probe").want(t, exitUsage, "already exists", "--replace")
	invoke(t, author, "plugin", "push", "tools/probe").want(t, exitUsage, "Docker Hub is docker.io")
	invoke(t, author, "plugin", "push", at.Host+"/tools/probe", "missing").want(t, exitUsage, "there is no plugin missing")
	invoke(t, author, "plugin", "push", "127.0.0.1:1/tools/probe", "probe").
		want(t, exitUsage, "127.0.0.1:1 does not answer", "refused", "check its name and port")

	add := func(reference string, texts ...string) {
		t.Helper()
		invoke(t, author, "plugin", "add", reference).want(t, exitUsage, append(texts, "the registry does not have it")...)
	}
	add(at.Reference("tools/other", "1"), "check the name", "docker login "+at.Host)
	add("oci://"+at.Host+"/tools/probe", "no tag latest, but oci://"+at.Host+"/tools/probe:1.0.0")
	add(at.Reference("tools/probe", "9.9"), "no tag 9.9, but oci://"+at.Host+"/tools/probe:1.0.0")
	add("oci://"+at.Host+"/tools/probe@sha256:"+strings.Repeat("0", 64), "check the digest")
}
