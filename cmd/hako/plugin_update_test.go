package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/wasmfile"
)

// publisher is a web server with one plugin, which changes.
type publisher struct {
	url  string
	wasm atomic.Pointer[[]byte]
}

func publish(t *testing.T, wasm []byte) *publisher {
	t.Helper()
	p := new(publisher)
	p.wasm.Store(&wasm)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(*p.wasm.Load())
	}))
	t.Cleanup(server.Close)
	p.url = server.URL + "/probe.wasm"
	return p
}

// installs is a directory with a plugin folder that the published plugin was added to.
func (p *publisher) installs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
	if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "plugin", "add", p.url).want(t, exitOK, "Next: hako plugin approve probe")
	return dir
}

func locked(t *testing.T, dir string) lock.Plugin {
	t.Helper()
	return must(lock.Load(filepath.Join(dir, lock.FileName)))["probe"]
}

// TestPluginUpdate: what an update changes is said, a version that asks for more waits while the approved one stays, and
// the version before comes back.
func TestPluginUpdate(t *testing.T) {
	t.Parallel()
	const asks = `
  http: [{name: api, url: "https://api.example.com/v1/", methods: [GET], reason: {en: Looks things up., ja: 調べます。}}]`
	first := probePlugin(t, asking(asks)...)
	second := probePlugin(t, append(asking(strings.Replace(asks, "[GET]", "[GET, POST]", 1)), "version: 1.0.0",
		"version: 1.1.0", "name: probe_echo", "name: probe_say")...)
	p := publish(t, first)
	dir := p.installs(t)
	if e := locked(t, dir); e.From != p.url || e.Version != "1.0.0" || e.Digest != must(wasmfile.Read(first)).Digest {
		t.Errorf("the lock file: %+v", e)
	}
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
	invoke(t, dir, "plugin", "outdated").want(t, exitOK, "There are no newer versions")
	invoke(t, dir, "plugin", "rollback", "probe").want(t, exitUsage, "there is nothing to roll back to")

	p.wasm.Store(&second)
	invoke(t, dir, "plugin", "outdated").want(t, exitOK, "probe 1.0.0: 1.1.0")
	changes := []string{"probe 1.1.0 instead of 1.0.0", "+ permission: api: also asks to send POST", "+ tool probe_say",
		"- tool probe_echo"}
	invoke(t, dir, "plugin", "update", "probe", "--dry-run").want(t, exitOK, changes...)
	if e := locked(t, dir); e.Version != "1.0.0" {
		t.Errorf("changed by a dry run: %+v", e)
	}
	invoke(t, dir, "plugin", "update").want(t, exitOK, append(changes, "Next: hako plugin approve probe")...)
	if e := locked(t, dir); e.Version != "1.1.0" || e.Previous == nil || e.Previous.Version != "1.0.0" {
		t.Errorf("the lock file: %+v", e)
	}
	invoke(t, dir, "plugin", "list").want(t, exitOK, "pending", "asks for more than was approved", "probe_echo")
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)

	p.wasm.Store(new([]byte)) // the author has lost it; the copy is on this machine
	invoke(t, dir, "plugin", "rollback", "probe").want(t, exitOK, "! It is a downgrade", "also asks to send POST",
		"Next: hako plugin approve probe")
	if now := must(os.ReadFile(filepath.Join(dir, "plugins", "probe.wasm"))); !bytes.Equal(now, first) {
		t.Error("not rolled back")
	}
	invoke(t, dir, "plugin", "list").want(t, exitOK, "pending", "probe_say")
	invoke(t, dir, "plugin", "rollback", "probe").want(t, exitOK, "It is approved")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "active", "probe_say")
	invoke(t, dir, "audit", "query", "--json").want(t, exitOK, "plugin.add", "plugin.update", "plugin.rollback")
	invoke(t, dir, "plugin", "update", "prob").want(t, exitUsage, `did you mean "probe"?`)
}

// TestPluginUpdateRule: with updates: same-permissions a version that asks for no more needs no other yes.
func TestPluginUpdateRule(t *testing.T) {
	t.Parallel()
	p := publish(t, probePlugin(t))
	dir := p.installs(t)
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nupdates: same-permissions\n"))
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
	second := probePlugin(t, "version: 1.0.0", "version: 1.0.1")
	p.wasm.Store(&second)
	invoke(t, dir, "plugin", "update").want(t, exitOK, "= It asks for the same permissions", "It is approved")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "1.0.1", "active")
	third := probePlugin(t, "name: probe\n", "name: other\n")
	p.wasm.Store(&third)
	invoke(t, dir, "plugin", "update").want(t, exitUsage, "it is the plugin other by now")
}

// TestHostileUpdates: where a plugin came from, something else is served later, also what its author signed and mended
// long ago. It does not become the installed version, even if updates need nobody's yes.
func TestHostileUpdates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits []string
		bytes string // instead of a plugin
		want  string
	}{
		"an older version":          {[]string{"version: 1.0.0", "version: 0.9.9"}, "", "older than the installed 1.0.0"},
		"an older major version":    {[]string{"version: 1.0.0", "version: 0.100.100"}, "", "older than the installed 1.0.0"},
		"a prerelease of it":        {[]string{"version: 1.0.0", "version: 1.0.0-rc.1"}, "", "older than the installed 1.0.0"},
		"a prerelease with a tag":   {[]string{"version: 1.0.0", "version: 1.0.0-9999+2.0.0"}, "", "older than the installed 1.0.0"},
		"another plugin":            {[]string{"name: probe\n", "name: shell\n"}, "", "it is the plugin shell by now"},
		"a name with an escape":     {[]string{"name: probe\n", "name: \"probe\\e[2J\"\n"}, "", "name"},
		"no plugin":                 {nil, "<html>", "not a Wasm module"},
		"nothing":                   {nil, " ", "not a Wasm module"},
		"a module without manifest": {nil, "\x00asm\x01\x00\x00\x00", "manifest"},
		"the first bytes of one":    {nil, "\x00asm", "not a Wasm module"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := probePlugin(t)
			p := publish(t, first)
			dir := p.installs(t)
			put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nupdates: same-permissions\n"))
			invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
			served := []byte(test.bytes)
			if test.bytes == "" {
				served = probePlugin(t, test.edits...)
			}
			p.wasm.Store(&served)
			for _, command := range []string{"outdated", "update"} {
				o := invoke(t, dir, "plugin", command)
				o.want(t, exitUsage, test.want)
				if strings.Contains(o.stderr+o.stdout, "\x1b") {
					t.Errorf("%s: %q", command, o.stderr)
				}
			}
			if now := must(os.ReadFile(filepath.Join(dir, "plugins", "probe.wasm"))); !bytes.Equal(now, first) {
				t.Error("the installed version was replaced")
			}
			if e := locked(t, dir); e.Version != "1.0.0" || e.Previous != nil {
				t.Errorf("the lock file: %+v", e)
			}
		})
	}
}

// TestPluginSync: a folder is rebuilt from its lock file, and from nothing else than the recorded bytes.
func TestPluginSync(t *testing.T) {
	t.Parallel()
	wasm := probePlugin(t, "It does little.", "It was never in service, so there is no copy of it.")
	p := publish(t, wasm)
	dir := p.installs(t)
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nmaxPluginSize: 8MiB\n"))
	file := filepath.Join(dir, "plugins", "probe.wasm")
	text := must(os.ReadFile(filepath.Join(dir, lock.FileName)))
	invoke(t, dir, "plugin", "sync", "--check").want(t, exitOK, "matches the lock file")
	for name, change := range map[string]func(){
		"missing":      func() { _ = os.Remove(file) },
		"another file": func() { put(t, file, probePlugin(t, "version: 1.0.0", "version: 6.6.6")) },
		"no plugin":    func() { put(t, file, []byte("text")) },
		"too large":    func() { put(t, file, make([]byte, 9<<20)) },
	} {
		change()
		invoke(t, dir, "plugin", "sync", "--check").want(t, exitUsage, "probe: the lock file says sha256:")
		invoke(t, dir, "plugin", "sync").want(t, exitOK, "probe 1.0.0 is in")
		if now := must(os.ReadFile(file)); !bytes.Equal(now, wasm) {
			t.Errorf("%s: not restored", name)
		}
	}
	if now := must(os.ReadFile(filepath.Join(dir, lock.FileName))); !bytes.Equal(now, text) {
		t.Errorf("the lock file was changed:\n%s", now)
	}

	fresh := func(text string) string {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
		put(t, filepath.Join(dir, lock.FileName), []byte(text))
		return dir
	}
	other := fresh(string(text))
	invoke(t, other, "plugin", "sync").want(t, exitOK, "probe 1.0.0 is in")
	invoke(t, other, "audit", "query", "--json").want(t, exitOK, "plugin.sync", locked(t, dir).Wasm)

	digest := locked(t, dir).Wasm
	for name, test := range map[string]struct{ old, new, want string }{
		"other bytes":  {digest, "sha256:" + strings.Repeat("0", 64), "it has the digest " + digest},
		"another name": {"  probe:", "  weather:", "it is the plugin probe, and not weather"},
		"a path":       {"  probe:", "  ../probe:", "is not a plugin name"},
		"a local file": {p.url, file, "must be an address"},
		"from a file":  {p.url, "file", "was added from a file"},
		"nowhere":      {p.url, "http://plugins.example/probe.wasm", "is not https"},
	} {
		dir := fresh(strings.ReplaceAll(string(text), test.old, test.new))
		invoke(t, dir, "plugin", "sync").want(t, exitUsage, test.want)
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "*.wasm")); len(left) > 0 {
			t.Errorf("%s: written: %v", name, left)
		}
	}
	invoke(t, fresh("{}"), "plugin", "sync").want(t, exitUsage, "names no plugins")
}

// TestPluginAddAtOnce: of plugins that are added at the same time, all are in the folder and in the lock file.
func TestPluginAddAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
	var group sync.WaitGroup
	const count = 4
	for i := range count {
		name := fmt.Sprintf("probe%d", i)
		put(t, filepath.Join(dir, name+".wasm"), probePlugin(t, "name: probe\n", "name: "+name+"\n"))
		group.Go(func() { invoke(t, dir, "plugin", "add", name+".wasm").want(t, exitOK) })
	}
	group.Wait()
	if p := must(lock.Load(filepath.Join(dir, lock.FileName))); len(p) != count {
		t.Errorf("the lock file has %d", len(p))
	}
	invoke(t, dir, "plugin", "sync", "--check").want(t, exitOK)
}

// TestUpdateUnderLoad: while a plugin is updated, approved and rolled back, every call of 32 clients is answered.
func TestUpdateUnderLoad(t *testing.T) {
	t.Parallel()
	p := publish(t, probePlugin(t))
	dir := p.installs(t)
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nmcp: {limits: {rate: 1000000}}\nlimits: {rate: 1000000}\n"))
	s := serve(t, dir)
	serving := func(text string) {
		t.Helper()
		if !testwait.Until(t, func() bool {
			_, answer := s.rpc(t, "", "tools/list", "", "")
			return strings.Contains(answer, text)
		}) {
			t.Fatalf("a version with %q is not in service:\n%s", text, s.stderr)
		}
	}
	var group sync.WaitGroup
	var calls [32]atomic.Int64
	done := make(chan struct{})
	for i := range calls {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				status, answer := s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"here"},`)
				if status != http.StatusOK || !strings.Contains(answer, `"text":"here"`) {
					t.Errorf("a call was lost: %d %s", status, answer)
					return
				}
				calls[i].Add(1)
			}
		})
	}
	// everyCaller waits until each client has had the answer to a call that it began afterwards.
	everyCaller := func() {
		t.Helper()
		var before [len(calls)]int64
		for i := range calls {
			before[i] = calls[i].Load()
		}
		for i := range calls {
			if !testwait.Until(t, func() bool { return t.Failed() || calls[i].Load() > before[i]+1 }) {
				t.Fatal("calls are not answered any more")
			}
		}
	}
	const before, after = "Gives the text back. It changes nothing.", "Gives the text back. It is new."
	second := probePlugin(t, "version: 1.0.0", "version: 1.1.0", before, after)
	p.wasm.Store(&second)
	for _, step := range []struct{ command, want string }{{"update", after}, {"rollback", before}} {
		invoke(t, dir, "plugin", step.command, "probe").want(t, exitOK, "Next: hako plugin approve probe")
		everyCaller()
		invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
		serving(step.want)
	}
	everyCaller()
	close(done)
	group.Wait()
}

// TestPluginUpdateRegistry: newer tags and tags that were moved are found, and a bundle fills a folder without a network.
func TestPluginUpdateRegistry(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	client := must(registry.New(registry.Options{}))
	defer client.Close()
	push := func(tag string, wasm []byte) {
		t.Helper()
		_ = must(client.Push(t.Context(), must(registry.ParseReference(at.Reference("tools/probe", tag))),
			&registry.Artifact{Wasm: wasm}))
	}
	version := func(v string) []byte {
		return probePlugin(t, "version: 1.0.0", "version: "+v, "It does little.", "It was never in service.")
	}
	push("1.0.0", version("1.0.0"))
	p := &publisher{url: at.Reference("tools/probe", "1.0.0")}
	dir := p.installs(t)
	local := probePlugin(t, "name: probe\n", "name: local\n")
	put(t, filepath.Join(dir, "local.wasm"), local)
	invoke(t, dir, "plugin", "outdated").want(t, exitOK, "There are no newer versions")

	push("1.2.0", version("1.2.0"))
	push("1.10.0", version("1.10.0"))
	push("latest", version("1.10.0"))
	invoke(t, dir, "plugin", "outdated").want(t, exitOK, "probe 1.0.0: 1.10.0")
	invoke(t, dir, "plugin", "update", "probe").want(t, exitOK, "probe 1.10.0 instead of 1.0.0")
	if e := locked(t, dir); e.From != at.Reference("tools/probe", "1.10.0") || e.Digest == e.Wasm {
		t.Errorf("the lock file: %+v", e)
	}
	push("1.10.0", version("1.9.9"))
	invoke(t, dir, "plugin", "outdated").want(t, exitOK, "the tag 1.10.0 names another version by now")
	invoke(t, dir, "plugin", "update", "--dry-run").want(t, exitUsage, "it is version 1.9.9 by now, which is older")

	invoke(t, dir, "plugin", "add", "local.wasm").want(t, exitOK)
	invoke(t, dir, "plugin", "outdated").want(t, exitUsage, "probe 1.10.0: the tag", "local was added from a file")
	invoke(t, dir, "plugin", "bundle", "all.tar").want(t, exitOK, "all.tar has 2 plugins")
	at.Close()
	fresh := func() string {
		other := t.TempDir()
		for _, file := range []string{"hako.yaml", lock.FileName, "all.tar"} {
			put(t, filepath.Join(other, file), must(os.ReadFile(filepath.Join(dir, file))))
		}
		return other
	}
	other := fresh()
	invoke(t, other, "plugin", "sync").want(t, exitUsage, "tools/probe")
	invoke(t, other, "plugin", "sync", "--from", "all.tar").want(t, exitOK, "local 1.0.0 is in", "probe 1.10.0 is in")
	invoke(t, other, "plugin", "sync", "--check").want(t, exitOK)
	if now := must(os.ReadFile(filepath.Join(other, "plugins", "local.wasm"))); !bytes.Equal(now, local) {
		t.Error("another file")
	}
	other = fresh()
	text := must(os.ReadFile(filepath.Join(other, lock.FileName)))
	digest := locked(t, dir).Digest
	put(t, filepath.Join(other, lock.FileName), bytes.ReplaceAll(text, []byte(digest), []byte("sha256:"+strings.Repeat("0", 64))))
	invoke(t, other, "plugin", "sync", "--from", "all.tar").want(t, exitUsage, "the bundle does not have 1.10.0")
	invoke(t, other, "plugin", "sync", "--from", "hako.yaml").want(t, exitUsage, "is not an OCI layout")
}

// TestSignedBundle: signatures are in a bundle, and needed without a network as with one.
func TestSignedBundle(t *testing.T) {
	t.Parallel()
	server := registrytest.Start(t)
	author, user := t.TempDir(), t.TempDir()
	keyPair(t, author)
	configure := func(dir string) {
		put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"+
			"signers: {acme: {for: ["+server.Host+"/tools/*], key: cosign.pub}}\n"))
	}
	put(t, filepath.Join(user, "cosign.pub"), must(os.ReadFile(filepath.Join(author, "cosign.pub"))))
	configure(user)
	put(t, filepath.Join(author, "probe.wasm"), probePlugin(t, "It does little.", "It was signed, and never in service."))
	invoke(t, author, "plugin", "push", server.Host+"/tools/probe", "--sign", "cosign.key").want(t, exitOK)
	invoke(t, user, "plugin", "add", server.Reference("tools/probe", "1.0.0")).want(t, exitOK)
	invoke(t, user, "plugin", "bundle", "all.tar").want(t, exitOK)
	server.Close()
	other := t.TempDir()
	configure(other)
	for _, file := range []string{lock.FileName, "all.tar"} {
		put(t, filepath.Join(other, file), must(os.ReadFile(filepath.Join(user, file))))
	}
	keyPair(t, other)
	invoke(t, other, "plugin", "sync", "--from", "all.tar").want(t, exitUsage, "has no valid signature", "acme")
	put(t, filepath.Join(other, "cosign.pub"), must(os.ReadFile(filepath.Join(user, "cosign.pub"))))
	invoke(t, other, "plugin", "sync", "--from", "all.tar").want(t, exitOK, "signed with the key sha256:")
}

// TestPluginRemove: a plugin leaves with its consent and its entry, a running host answers the call that is there and
// offers the plugin no more, and what stays is named.
func TestPluginRemove(t *testing.T) {
	t.Parallel()
	p := publish(t, probePlugin(t))
	dir := p.installs(t)
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK)
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nplugin: {probe: {prefix: my_, limits: {time: 3s}}}\n"))
	put(t, filepath.Join(dir, "hako.store", "plugins", "probe", "default.db"), nil)
	text := must(os.ReadFile(filepath.Join(dir, "plugins", "probe.wasm")))
	inside, _ := manifest.Inside(text)
	put(t, filepath.Join(dir, "plugins", "probe.yaml"), inside)
	shared := filepath.Join(dir, "plugins", "policy.yaml") // of all components in the folder
	put(t, shared, []byte("version: \"1.0\"\n"))
	s := serve(t, dir)
	answered := make(chan string, 1)
	go func() {
		_, answer := s.rpc(t, "", "tools/call", "my_probe_wait", `"name":"my_probe_wait","arguments":{},`)
		answered <- answer
	}()
	if !testwait.Until(t, func() bool { return s.calling(t) || len(answered) > 0 }) {
		t.Fatal("the plugin is not called")
	}
	o := invoke(t, dir, "plugin", "remove", "probe")
	o.want(t, exitOK, "removed: "+filepath.Join(dir, "plugins", "probe.wasm"), "probe.yaml", "its entry in ", "its consent in ",
		"left:    a copy of the file, for 30 days: ", "left:    its databases: ", "left:    its settings: plugin.probe in ")
	_, copied, _ := strings.Cut(o.stdout, "for 30 days: ")
	copied, _, _ = strings.Cut(copied, "\n")
	if now := must(os.ReadFile(copied)); !bytes.Equal(now, text) {
		t.Error("the copy is another file")
	}
	if !testwait.Until(t, func() bool {
		_, answer := s.rpc(t, "", "tools/list", "", "")
		return !strings.Contains(answer, "my_probe_echo")
	}) {
		t.Fatal("the plugin is still offered")
	}
	if answer := <-answered; !strings.Contains(answer, "3s") { // its own limit, and not the removal
		t.Errorf("the call that was there: %s", answer)
	}
	if len(must(lock.Load(filepath.Join(dir, lock.FileName)))) != 0 {
		t.Error("it has an entry in the lock file")
	}
	if _, err := os.Stat(shared); err != nil {
		t.Error(err)
	}
	invoke(t, dir, "plugin", "add", copied).want(t, exitOK, "Next: hako plugin approve probe")
	invoke(t, dir, "audit", "query", "--json").want(t, exitOK, "plugin.remove")
	elsewhere := filepath.Join(dir, "plugins", "elsewhere.wasm")
	put(t, elsewhere, probePlugin(t, "name: probe\n", "name: elsewhere\n"))
	invoke(t, dir, "plugin", "approve", "elsewhere", "-y").want(t, exitOK)
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "plugin", "remove", "elsewhere").want(t, exitUsage, "there is no plugin elsewhere to remove")
	put(t, elsewhere, probePlugin(t, "name: probe\n", "name: elsewhere\n"))
	invoke(t, dir, "plugin", "remove", "elsewhere").want(t, exitOK, "its consent in ") // it was kept
	invoke(t, dir, "plugin", "remove", "nothing").want(t, exitUsage, "there is no plugin nothing to remove")
	invoke(t, dir, "plugin", "remove", "../probe").want(t, exitUsage, "is not a plugin name")

	put(t, filepath.Join(dir, "plugins", "mine.wasm"), probePlugin(t, "name: probe\n", "name: mine\n"))
	invoke(t, dir, "plugin", "sync").want(t, exitOK, "matches the lock file", "mine is not in the lock file and stays")
	invoke(t, dir, "plugin", "sync", "--prune", "--check").want(t, exitOK, "mine is not in the lock file")
	invoke(t, dir, "plugin", "sync", "--prune").want(t, exitOK, "removed: "+filepath.Join(dir, "plugins", "mine.wasm"))
	invoke(t, dir, "plugin", "list").want(t, exitOK, "probe")
}
