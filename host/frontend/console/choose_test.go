package console_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/grant"
)

// choosy asks for what somebody has to choose.
var choosy = asking[:strings.Index(asking, "permissions:")] + `permissions:
  files: [{mount: workspace, access: read-write, reason: {en: to work, ja: 作業のため}}]
  exec: {programs: ["*"], reason: r}
  http: [{name: api, url: "https://api.example.com/", reason: r}]
`

type chooseJSON struct {
	Digest string
	Files  []struct {
		Name, About string
		Write       bool
	}
	HTTP   []struct{ Name, URL, Configured string }
	Exec   *struct{ Programs []string }
	Chosen grant.Choices

	Machines int
	Machine  string
}

// choosing is a world with that plugin, an admin, and a folder to choose.
func choosing(t *testing.T, change func(*world, *console.Options)) (w *world, b *browser, dir string, form chooseJSON) {
	t.Helper()
	w = newWorld(t, change)
	w.put("asking", strings.Replace(choosy, "VERSION", "1.0.0", 1))
	b = w.as(console.Admin)
	var p struct{ Choose *chooseJSON }
	if b.get("plugins/asking").into(t, &p); p.Choose == nil {
		t.Fatal("there is nothing to choose")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return w, b, dir, *p.Choose
}

// choices is the request of the page.
type choices struct {
	Digest  string        `json:"digest"`
	Version string        `json:"version,omitempty"`
	Choices grant.Choices `json:"choices"`
}

// fields are the errors by field.
func (a *answer) fields() map[string]string {
	var body struct {
		Error struct{ Fields map[string]string }
	}
	_ = json.Unmarshal([]byte(a.body), &body)
	return body.Error.Fields
}

func TestChoose(t *testing.T) {
	t.Parallel()
	w, b, dir, form := choosing(t, nil)
	if f := form.Files; len(f) != 1 || f[0].Name != "workspace" || !f[0].Write ||
		!strings.Contains(f[0].About, "because: to work") || form.HTTP[0].URL != "https://api.example.com/" ||
		form.Exec == nil {
		t.Fatalf("the form is %+v", form)
	}
	var shown askJSON
	b.get("plugins/asking").into(t, &struct{ Ask *askJSON }{&shown})
	if shown.Ready || shown.Version != "" ||
		shown.Remedy != "hako plugin approve asking --mount workspace=./workspace --program git --program ls" || shown.Problem == "" {
		t.Errorf("before: %+v", shown)
	}
	body := choices{Digest: form.Digest, Choices: form.Chosen}
	body.Choices.Mounts["workspace"] = grant.MountChoice{Dir: dir, ReadOnly: true}
	body.Choices.Exec.Programs = []string{"ls"}
	var ask askJSON
	b.post("plugins/asking/review", body).into(t, &ask)
	want := []string{"http api: may send GET, HEAD to https://api.example.com/",
		"files /workspace: may read what is in " + dir}
	if !ask.Ready || len(ask.Gets) != 3 || ask.Gets[0] != want[0] || ask.Gets[1] != want[1] ||
		!strings.HasPrefix(ask.Gets[2], "commands: may run ls") {
		t.Fatalf("it would get %q", ask.Gets)
	}
	if _, err := os.Stat(w.consents); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("a look has recorded something")
	}
	body.Version = ask.Version
	other := body
	other.Choices.Exec = &grant.ExecChoice{Programs: []string{"ls", "rm"}}
	if got := b.post("plugins/asking/approve", other); got.status != http.StatusConflict ||
		!strings.Contains(got.body, "commands: may run ls, rm") {
		t.Errorf("a yes to other choices: %d %s", got.status, got.body)
	}
	var p pluginJSON
	b.post("plugins/asking/approve", body).into(t, &p)
	if p.State != "active" || len(p.Gets) != 3 || p.Gets[1] != want[1] {
		t.Fatalf("after: %+v", p)
	}
	w.recorded("plugin.approve begun admin", "plugin.approve ok admin")
	var list struct {
		Items []struct{ Detail map[string]string }
	}
	if b.get("audit?action=plugin.approve").into(t, &list); !strings.Contains(list.Items[0].Detail["gets"], want[1]) {
		t.Errorf("the audit log does not say what it gets: %v", list.Items[0].Detail)
	}
	w.changeMind(b, body, dir)
}

// changeMind chooses something else for the plugin, which is in service.
func (w *world) changeMind(b *browser, body choices, dir string) {
	w.t.Helper()
	body.Choices.Mounts["workspace"], body.Version = grant.MountChoice{Dir: dir}, ""
	var ask askJSON
	b.post("plugins/asking/review", body).into(w.t, &ask)
	body.Version = ask.Version
	var p pluginJSON
	b.post("plugins/asking/approve", body).into(w.t, &p)
	if p.State != "active" ||
		p.Gets[1] != "files /workspace: may read, change and delete what is in "+dir+", at most 10GiB" {
		w.t.Errorf("after another choice: %+v", p)
	}
}

// TestChooseRefuses: what cannot be chosen is said at its field, in the reader's language, and nothing is recorded.
func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	w, b, dir, form := choosing(t, nil)
	body := choices{Digest: form.Digest, Choices: grant.Choices{
		Mounts: map[string]grant.MountChoice{"workspace": {Dir: dir + "/../../../../etc"}},
		HTTP:   map[string]grant.HTTPMapping{"api": {URL: "https://*.example.com/"}},
		Exec: &grant.ExecChoice{Programs: strings.Split(strings.Repeat("x ", 65), " "), Env: []string{"PATH"},
			Connect: []string{"a.test:0", "x"}},
	}}
	for _, path := range []string{"plugins/asking/review", "plugins/asking/approve"} {
		got := b.post(path, body)
		for field, want := range map[string]string{
			"mounts.workspace.dir": `write the path without ".."`,
			"http.api.url":         "reaches hosts that the plugin does not ask for",
			"exec.programs":        "name at most 64",
			"exec.env":             "cannot be passed on", "exec.connect": `port "0" is not a number from 1 to 65535`,
		} {
			if text := got.fields()[field]; got.status != http.StatusBadRequest || !strings.Contains(text, want) {
				t.Errorf("%s: %d, %s: %q, want %q", path, got.status, field, text, want)
			}
		}
	}
	if text := b.post("plugins/asking/review?lang=ja", body).fields()["mounts.workspace.dir"]; text != "パスに「..」を含めないでください" {
		t.Errorf("in Japanese: %q", text)
	}
	for name, wrong := range map[string]string{
		"another file": `{"digest":"sha256:0","choices":{}}`, "not choices": `{"choices":{"mounts":[]}}`,
		"unknown": `{"choices":{"tools":{}}}`,
	} {
		if got := b.post("plugins/asking/review", wrong); got.status != http.StatusBadRequest &&
			got.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if _, err := os.Stat(w.consents); !errors.Is(err, os.ErrNotExist) {
		t.Error("a consent was written")
	}
}

// TestChooseUnconfined: where the kernel cannot confine commands, the field that allows them all the same says so.
func TestChooseUnconfined(t *testing.T) {
	t.Parallel()
	_, b, dir, form := choosing(t, func(_ *world, o *console.Options) {
		store := o.Consents.(consents)
		store.check = func(_ string, g grant.Grants) error {
			if g.Exec.Unconfined {
				return nil
			}
			return errors.New("this kernel cannot")
		}
		o.Consents = store
	})
	body := choices{Digest: form.Digest, Choices: form.Chosen}
	body.Choices.Mounts["workspace"] = grant.MountChoice{Dir: dir}
	body.Choices.Exec.Programs = []string{"ls"}
	if got := b.post("plugins/asking/review", body); got.fields()["exec.unconfined"] != "this kernel cannot" {
		t.Errorf("%d %s", got.status, got.body)
	}
	body.Choices.Exec.Unconfined = true
	var ask askJSON
	if b.post("plugins/asking/review", body).into(t, &ask); !ask.Ready {
		t.Errorf("%+v", ask)
	}
}

// TestChooseNothing: where nothing is to be chosen, or nobody could record it, there is no form.
func TestChooseNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *console.Options){
		"no permissions": nil, "no consents": func(_ *world, o *console.Options) { o.Consents = nil },
	} {
		w := newWorld(t, change)
		text := choosy
		if change == nil {
			text = asking[:strings.Index(asking, "permissions:")]
		}
		w.put("asking", strings.Replace(text, "VERSION", "1.0.0", 1))
		if got := w.as(console.Admin).get("plugins/asking"); got.status != http.StatusOK ||
			strings.Contains(got.body, `"choose"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestChooseOnSeveralMachines: where hako runs on several, the form says that folders are looked for on one of them.
func TestChooseOnSeveralMachines(t *testing.T) {
	t.Parallel()
	w, b, _, form := choosing(t, nil)
	if form.Machines != 0 || form.Machine != "" {
		t.Errorf("alone: %+v", form)
	}
	if err := w.store.Join(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for i, host := range []string{here, "web-2", "web-3"} {
		err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(),
				`INSERT INTO replica SELECT $1, $2, version, started, seen FROM replica WHERE id = $3`,
				fmt.Sprint("other-", i), host, w.store.Replica())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Choose chooseJSON }
		b.get("plugins/asking").into(t, &p)
		if want := []int{0, 2, 3}[i]; p.Choose.Machines != want || (p.Choose.Machine == here) != (want > 0) {
			t.Errorf("beside %s: %d machines, of which this is %q; want %d", host, p.Choose.Machines, p.Choose.Machine,
				want)
		}
	}
}
