package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/grant"
)

const filesAndHTTP = `
  http: [{name: api, url: "https://api.example.com/v1/", methods: [GET], reason: {en: Looks things up., ja: 調べます。}}]
  files: [{mount: workspace, access: read-write, reason: {en: Keeps notes., ja: メモを保存します。}}]`

// consent reads the probe's entry of the consents file in dir.
func consent(t *testing.T, dir string) grant.Consent {
	t.Helper()
	file, err := grant.Load(filepath.Join(dir, "hako.consents.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	consents := file.Consents()
	if len(consents) != 1 {
		t.Fatalf("there are %d consents", len(consents))
	}
	return consents[0]
}

// realPath is the path without symbolic links, which some systems have above their temporary directories.
func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestApproveShows(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "", asking(filesAndHTTP)...)
	work := realPath(t, t.TempDir())
	o := invokeWith(t, dir, "y\n", "plugin", "approve", "probe", "--mount", "workspace="+work+":ro")
	o.want(t, exitOK, "Plugin probe 1.0.0: Helps to test.", "sha256:", "tool probe_echo",
		"may send GET to https://api.example.com/v1/, because: Looks things up.",
		"may read, change and delete the files", "because: Keeps notes.",
		"http api: may send GET to https://api.example.com/v1/", "files /workspace: may read what is in "+work,
		"Approve? [y/N]", "Approved; recorded in "+filepath.Join(dir, "hako.consents.yaml"), "Next: hako call probe_")
	if c := consent(t, dir); c.Mounts["workspace"].Path != work || c.Mounts["workspace"].Write || c.ApprovedBy == "" {
		t.Errorf("got %+v", c)
	}
	put(t, filepath.Join(work, "note.txt"), []byte("a note"))
	invoke(t, dir, "call", "probe_read", `{"text":"note.txt"}`).want(t, exitOK, "a note")
	invoke(t, dir, "config", "show").want(t, exitOK, "files /workspace: may read what is in "+work)
}

func TestApproveInJapanese(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "locale: ja\n", asking(filesAndHTTP)...)
	o := invoke(t, dir, "plugin", "approve", "probe", "--yes", "--mount", "workspace=.")
	o.want(t, exitOK, "テストを助けます。", "調べます。", "メモを保存します。")
}

// TestApproveNeedsAYes: silence and everything but yes are a no, and nothing is recorded.
func TestApproveNeedsAYes(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", "\n", "n\n", "yep\n", "Y e s\n"} {
		dir := workplace(t, "")
		invokeWith(t, dir, answer, "plugin", "approve", "probe").want(t, exitFailed, "not approved")
		if _, err := os.Stat(filepath.Join(dir, "hako.consents.yaml")); err == nil {
			t.Errorf("the answer %q was taken for a yes", answer)
		}
	}
	for _, answer := range []string{"y\n", "YES\n", "y"} {
		invokeWith(t, workplace(t, ""), answer, "plugin", "approve", "probe").want(t, exitOK, "Approved")
	}
}

// TestApproveMaps: relative folders below the consents file are recorded as such, others by their whole path.
func TestApproveMaps(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "", asking(filesAndHTTP)...)
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--mount", "workspace=notes", "--http",
		"api=http://localhost:9/v1/",
		"--private", "api", "--note", "for the tests").want(t, exitOK, "http://localhost:9/v1/, where requests to https://api.example.com/v1/ go, private addresses too",
		"files /workspace: may read, change and delete what is in "+realPath(t, filepath.Join(dir, "notes")))
	c := consent(t, dir)
	if m := c.Mounts["workspace"]; m.Path != "notes" || !m.Write {
		t.Errorf("the mount is %+v", m)
	}
	if c.HTTP["api"] != (grant.HTTPMapping{URL: "http://localhost:9/v1/", Private: true}) || c.Note != "for the tests" {
		t.Errorf("got %+v", c)
	}
	invoke(t, dir, "plugin", "inspect", "probe").want(t, exitOK, "may read, change and delete what is in "+
		filepath.Join(dir, "notes"))
	whole := realPath(t, filepath.Join(dir, "notes"))
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--mount", "workspace="+whole).want(t, exitOK)
	if m := consent(t, dir).Mounts["workspace"]; m.Path != whole {
		t.Errorf("the mount is %+v", m)
	}
}

// TestApproveLink: a link is followed before the yes, so that what is shown is what is given, also when the link leads
// elsewhere later.
func TestApproveLink(t *testing.T) {
	t.Parallel()
	dir, work := workplace(t, "", asking(filesAndHTTP)...), realPath(t, t.TempDir())
	if err := os.Symlink(work, filepath.Join(dir, "link")); err != nil {
		testprogram.Missing(t, "this machine does not allow symbolic links")
	}
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--mount", "workspace=link").want(t, exitOK,
		"may read, change and delete what is in "+work)
	if m := consent(t, dir).Mounts["workspace"]; m.Path != work {
		t.Errorf("the mount is %+v", m)
	}
}

// TestApproveUpdate: an update says what it asks for beyond the earlier yes, and keeps what that settled.
func TestApproveUpdate(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "", asking(filesAndHTTP)...)
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--mount", "workspace=.:ro").want(t, exitOK)
	more := strings.Replace(filesAndHTTP, "methods: [GET]", "methods: [GET, POST]", 1)
	put(t, filepath.Join(dir, "plugins", "probe.wasm"),
		probePlugin(t, append(asking(more), "version: 1.0.0", "version: 1.1.0")...))
	invoke(t, dir, "plugin", "list").want(t, exitOK, "pending", "asks for more")
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK, "That is more than version 1.0.0",
		"+ api: also asks to send POST")
	if c := consent(t, dir); c.Version != "1.1.0" || c.Mounts["workspace"].Path != "." || c.Mounts["workspace"].Write {
		t.Errorf("got %+v", c)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"),
		probePlugin(t, append(asking(more), "version: 1.0.0", "version: 1.2.0")...))
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK, "no more than version 1.1.0")
}

// TestApproveCredentials: a credential and a database are shown before the yes, and another credential can take the
// place of the one that was asked for.
func TestApproveCredentials(t *testing.T) {
	t.Parallel()
	const asks = `
  http: [{name: api, url: "https://api.example.com/v1/", credential: example, reason: {en: Looks things up., ja: 調べます。}}]
  sql: {migrations: [CREATE TABLE a (b)], quota: 5MiB, reason: {en: Keeps tasks., ja: タスクを保存します。}}`
	dir := workplace(t, "", asking(asks)...)
	invoke(t, dir, "plugin", "inspect", "probe").want(t, exitOK, "sends your credential example along",
		"a database of its own, up to 5MiB for each tenant")
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--credential", "api").want(t, exitUsage, "NAME=CREDENTIAL")
	invoke(t, dir, "plugin", "approve", "probe", "-y", "--credential", "api=sandbox").want(t, exitOK,
		"sends your credential example along",
		"http api: may send GET, HEAD to https://api.example.com/v1/, with the credential sandbox",
		"sql: a database of its own for each tenant, at most 5MiB",
		"Next: set credentials.sandbox in hako.yaml")
	if c := consent(t, dir); c.HTTP["api"].Credential != "sandbox" || c.Asked.HTTP[0].Credential != "example" ||
		c.Asked.SQL == nil {
		t.Errorf("got %+v", c)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"),
		probePlugin(t, append(asking(strings.Replace(asks, "credential: example, ", "", 1)), "version: 1.0.0",
			"version: 1.1.0")...))
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK, "no more than version 1.0.0")
	if c := consent(t, dir); c.HTTP["api"].Credential != "" {
		t.Errorf("a credential that is not asked for any more is kept: %+v", c)
	}
}

func TestApproveFails(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "", asking(filesAndHTTP)...)
	put(t, filepath.Join(dir, "text.wasm"), []byte("text"))
	tests := map[string]struct {
		args []string
		want string
	}{
		"no such plugin": {[]string{"prob"}, `unknown plugin "prob": did you mean "probe"?`},
		"not a plugin":   {[]string{"text.wasm"}, "not a Wasm module"},
		"no folder":      {[]string{"probe"}, "hako plugin approve probe --mount workspace=./workspace"},
		"no such folder": {[]string{"probe", "--mount", "workspace=nowhere"}, "create it, or"},
		"not a folder":   {[]string{"probe", "--mount", "workspace=hako.yaml"}, "is not a folder"},
		"no such mount": {[]string{"probe", "--mount", "workspac=.", "--mount", "workspace=."},
			`did you mean "workspace"?`},
		"half a mount":       {[]string{"probe", "--mount", "workspace"}, "NAME=DIR"},
		"half an address":    {[]string{"probe", "--http", "api="}, "NAME=URL"},
		"not a URL":          {[]string{"probe", "--mount", "workspace=.", "--http", "api=example"}, "example"},
		"no such permission": {[]string{"probe", "--mount", "workspace=.", "--private", "apo"}, `did you mean "api"?`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := invoke(t, dir, append([]string{"plugin", "approve", "--yes"}, test.args...)...)
			o.want(t, exitUsage, test.want)
			if strings.Contains(o.stdout, "Approved") {
				t.Errorf("it was approved all the same: %s", o)
			}
		})
	}
}

// TestApproveNamesAllFaults: a folder and a setting that are missing are named at once.
func TestApproveNamesAllFaults(t *testing.T) {
	t.Parallel()
	changes := append(asking(filesAndHTTP), "limits:\n", "  region: {type: string, required: true, description: Where.}\nlimits:\n")
	dir := workplace(t, "", changes...)
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitUsage,
		"plugin.probe.config in hako.yaml: region: is missing", "mount workspace")
}

// TestApproveFile: a file that is in no folder can be approved before it is put there.
func TestApproveFile(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	file := filepath.Join(dir, "new.wasm")
	put(t, file, probePlugin(t, "name: probe\n", "name: novel\n", "probe_", "novel_"))
	invoke(t, dir, "plugin", "approve", "new.wasm", "--yes").want(t, exitOK, "Put "+file+" into a plugin folder")
	if err := os.Rename(file, filepath.Join(dir, "plugins", "new.wasm")); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "plugin", "list").want(t, exitOK, "novel  1.0.0  active")
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	invoke(t, dir, "plugin", "revoke", "prob").want(t, exitUsage, `did you mean "probe"?`)
	invoke(t, dir, "plugin", "revoke", "probe").want(t, exitOK, "Revoked; recorded in")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "revoked")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK, "Approved")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "active")
}

// TestApproveUnwritable: the consents are in /proc, where not even root can create a file.
func TestApproveUnwritable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir := workplace(t, "consents: locked/consents/consents.yaml\n")
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc", filepath.Join(dir, "locked", "consents")); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitUsage, "locked")
}

// TestApproveUnusableFile: a file outside of the plugin folders is refused for the reasons for which it would be refused
// in them: it cannot start within the limits in force for it, or is no plugin.
func TestApproveUnusableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "large.wasm"), tooLarge(t))
	const refused = "large.wasm cannot be approved: "
	invoke(t, dir, "plugin", "approve", "large.wasm", "--yes").want(t, exitUsage,
		refused+"it starts with 4096 MiB of linear memory, and limits.memory is 64 MiB")
	invoke(t, dir, "plugin", "inspect", "large.wasm").want(t, exitOK, "broken: it starts with 4096 MiB")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugin: {large: {limits: {memory: 4GiB}}}\n"))
	invoke(t, dir, "plugin", "approve", "large.wasm", "--yes").want(t, exitUsage,
		refused+"the module exports no hako_abi_1")
}
