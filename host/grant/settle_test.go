package grant_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// realDir returns a folder whose path has no symbolic links.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// chosen returns valid choices for the plugin asking.
func chosen(work, more string) grant.Choices {
	return grant.Choices{
		Mounts: map[string]grant.MountChoice{"work": {Dir: work}, "more": {Dir: more + string(filepath.Separator)}},
		HTTP: map[string]grant.HTTPMapping{"api": {URL: "https://mirror.example.com/", Private: true,
			Credential: "my-key"}, "open": {}},
		Exec: &grant.ExecChoice{Programs: []string{"git", ""}, Env: []string{"LANG"},
			Connect: []string{"GitHub.com.:0443", ""}},
		Note: "for the team",
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	work, more := realDir(t), realDir(t)
	p := grant.Propose(nil, asking(), digestA, "aki")
	if err := p.Settle(chosen(work, more)); err != nil {
		t.Fatal(err)
	}
	g, err := p.Grants(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []grant.Mount{{Name: "work", Path: work, Write: true, Quota: grant.DefaultMountQuota},
		{Name: "more", Path: more}}
	if !slices.EqualFunc(g.Mounts, want, equalMounts) {
		t.Errorf("mounts = %+v, want %+v", g.Mounts, want)
	}
	if r := g.HTTP[0]; r.URL != "https://mirror.example.com/" || !r.Private || r.Credential != "my-key" ||
		g.HTTP[1].URL != "https://open.example.com" {
		t.Errorf("http = %+v", g.HTTP)
	}
	if _, recorded := p.Consent.HTTP["open"]; recorded {
		t.Error("an address that is granted as asked is recorded as chosen")
	}
	if want := (&grant.Exec{Programs: []string{"git"}, Env: []string{"LANG"},
		Connect: []string{"github.com:443"}}); !reflect.DeepEqual(g.Exec, want) || p.Consent.Note != "for the team" {
		t.Errorf("exec = %+v, want %+v; note %q", g.Exec, want, p.Consent.Note)
	}
	if again := p.Choices(); again.Mounts["more"].Dir != more || !again.Mounts["more"].ReadOnly ||
		!slices.Equal(again.Exec.Connect, []string{"github.com:443"}) || again.HTTP["api"] != p.Consent.HTTP["api"] {
		t.Errorf("the choices so far are %+v", again)
	}
}

// TestSettleKeeps: earlier settings stay, with deny globs and quota, and are not checked again. Another folder keeps
// deny globs and quota too.
func TestSettleKeeps(t *testing.T) {
	t.Parallel()
	other := realDir(t)
	before := grant.Consent{Name: "every", Mounts: map[string]grant.Mount{
		"work": {Name: "work", Path: "/nowhere", Write: true, Deny: []string{".git/**"}},
		"more": {Name: "more", Path: "/nowhere/else", Quota: 5},
	}}
	p := grant.Propose([]grant.Consent{before}, asking(), digestA, "aki")
	c := p.Choices()
	c.Mounts["more"] = grant.MountChoice{Dir: other}
	c.Mounts["work"] = grant.MountChoice{Dir: "/nowhere", ReadOnly: true}
	if err := p.Settle(c); err != nil {
		t.Fatal(err)
	}
	if m := p.Consent.Mounts["work"]; m.Path != "/nowhere" || m.Write || len(m.Deny) != 1 {
		t.Errorf("the mount that stays is %+v", m)
	}
	if m := p.Consent.Mounts["more"]; m.Path != other || m.Quota != 5 {
		t.Errorf("the mount that changes is %+v", m)
	}
}

// TestSettleQuota: a mount that becomes writable gets the default quota. A consent without a quota keeps none.
func TestSettleQuota(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	for name, c := range map[string]struct {
		before      map[string]grant.Mount
		quota, want int64
		text        string
	}{
		"new":        {nil, 0, grant.DefaultMountQuota, "at most 10GiB"},
		"configured": {nil, 1 << 20, 1 << 20, "at most 1MiB"},
		"writable before": {map[string]grant.Mount{"work": {Name: "work", Path: dir, Write: true}},
			0, 0, "without a quota"},
		"read-only before": {map[string]grant.Mount{"work": {Name: "work", Path: dir}}, 0,
			grant.DefaultMountQuota, "at most 10GiB"},
		"with its own quota": {map[string]grant.Mount{"work": {Name: "work", Path: dir, Write: true, Quota: 5}}, 0, 5,
			"at most 5"},
	} {
		var consents []grant.Consent
		if c.before != nil {
			consents = append(consents, grant.Consent{Name: "every", Mounts: c.before})
		}
		p := grant.Propose(consents, asking(), digestA, "aki")
		p.Quota = c.quota
		if err := p.Settle(chosen(dir, dir)); err != nil {
			t.Fatal(err)
		}
		g, err := p.Grants(nil)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(g.Explain("en"), "\n"); p.Consent.Mounts["work"].Quota != c.want ||
			!strings.Contains(said, c.text) {
			t.Errorf("%s: %+v, and the operator reads\n%s", name, p.Consent.Mounts["work"], said)
		}
	}
}

func TestSettleRefuses(t *testing.T) {
	t.Parallel()
	work := realDir(t)
	file, link := filepath.Join(work, "file"), filepath.Join(work, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linked := os.Symlink(work, link) == nil // Windows requires a privilege for it
	mount := func(dir string) func(*grant.Choices) {
		return func(c *grant.Choices) { c.Mounts["work"] = grant.MountChoice{Dir: dir} }
	}
	http := func(name string, m grant.HTTPMapping) func(*grant.Choices) {
		return func(c *grant.Choices) { c.HTTP[name] = m }
	}
	many := strings.Split(strings.Repeat("1 ", 65), " ")
	for name, test := range map[string]struct {
		change      func(*grant.Choices)
		field, want string
	}{
		"no folder":    {mount(""), "mounts.work.dir", "choose a folder"},
		"relative":     {mount("docs"), "mounts.work.dir", "write the whole path"},
		"home":         {mount("~/docs"), "mounts.work.dir", "write the whole path"},
		"up":           {mount(work + "/x/../../etc"), "mounts.work.dir", `without ".."`},
		"not there":    {mount(filepath.Join(work, "nothing")), "mounts.work.dir", "create it, or"},
		"a file":       {mount(file), "mounts.work.dir", "is not a folder"},
		"below a file": {mount(filepath.Join(file, "x")), "mounts.work.dir", "name another"},
		"zero":         {mount(work + "\x00"), "mounts.work.dir", "write the whole path"},
		"long":         {mount(work + strings.Repeat("/x", 4000)), "mounts.work.dir", "longer than 4096 bytes"},
		"link":         {mount(link), "mounts.work.dir", "name the folder itself, " + work},
		"unknown mount": {func(c *grant.Choices) { c.Mounts["wrk"] = grant.MountChoice{Dir: work} },
			"", `did you mean "work"?`},
		"no address": {http("api", grant.HTTPMapping{URL: "mirror"}), "http.api.url",
			`must start with "https://"`},
		"any host": {http("open", grant.HTTPMapping{URL: "https://*/"}), "http.open.url",
			"reaches hosts that the plugin does not ask for"},
		"subdomains": {http("open", grant.HTTPMapping{URL: "https://*.example.com/"}), "http.open.url",
			"those of https://open.example.com"},
		"credential": {http("api", grant.HTTPMapping{Credential: "My key"}), "http.api.credential",
			"is not a credential name"},
		"none asked for": {http("open", grant.HTTPMapping{Credential: "my-key"}), "http.open.credential",
			"asks for no credential"},
		"in the clear": {http("api", grant.HTTPMapping{URL: "http://mirror.example.com/"}),
			"http.api.url", "cannot be sent to"},
		"unknown address": {http("apo", grant.HTTPMapping{}), "", `did you mean "api"?`},
		"other program": {func(c *grant.Choices) { c.Exec.Programs = []string{"git", "sh"} }, "exec.programs",
			"does not ask to run sh"},
		"no program": {func(c *grant.Choices) { c.Exec.Programs = []string{""} }, "exec.programs",
			"name at least one program"},
		"variable": {func(c *grant.Choices) { c.Exec.Env = []string{"PATH"} }, "exec.env",
			`"PATH" cannot be passed on`},
		"port": {func(c *grant.Choices) { c.Exec.Connect = []string{"a.test:70000"} },
			"exec.connect", "from 1 to 65535"},
		"too many hosts":    {func(c *grant.Choices) { c.Exec.Connect = many }, "exec.connect", "at most 64"},
		"too many programs": {func(c *grant.Choices) { c.Exec.Programs = many }, "exec.programs", "at most 64"},
		"note": {func(c *grant.Choices) { c.Note = strings.Repeat("x", 501) }, "note",
			"longer than 500 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "link" && !linked {
				testprogram.Missing(t, "this machine does not allow symbolic links")
			}
			c := chosen(work, work)
			test.change(&c)
			p := grant.Propose(nil, asking(), digestA, "aki")
			err := p.Settle(c)
			if err == nil {
				_, err = p.Grants(nil)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) && test.want != "choose a folder" &&
				test.want != "name at least one program" {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			list := grant.ChoiceErrors(err)
			if test.field == "" {
				return
			}
			i := slices.IndexFunc(list, func(e *grant.ChoiceError) bool { return e.Field == test.field })
			if i < 0 || !strings.Contains(list[i].Text["en"], test.want) || list[i].Text["ja"] == "" {
				t.Errorf("fields: %+v, want %s at %s", list, test.want, test.field)
			}
		})
	}
}

// TestSettleWildcards: a wildcard within the requested hosts may be chosen, and one of an earlier consent stays.
func TestSettleWildcards(t *testing.T) {
	t.Parallel()
	m := &manifest.Manifest{Name: "wide", Version: "1.0.0",
		Permissions: manifest.Permissions{HTTP: []manifest.HTTPPermission{{Name: "api",
			URL: "https://*.example.com/"}}}}
	settle := func(p *grant.Proposal, url string) error {
		return p.Settle(grant.Choices{HTTP: map[string]grant.HTTPMapping{"api": {URL: url}}})
	}
	for url, fine := range map[string]bool{
		"https://*.eu.example.com/": true, "https://one.example.com/": true, "https://other.example.org/": true,
		"https://*.example.org/": false, "https://*/": false, "http://*.example.com/": false,
	} {
		if err := settle(grant.Propose(nil, m, digestA, "aki"), url); (err == nil) != fine {
			t.Errorf("%s: %v", url, err)
		}
	}
	wide := grant.Consent{Name: "wide", HTTP: map[string]grant.HTTPMapping{"api": {URL: "https://*/"}}}
	if err := settle(grant.Propose([]grant.Consent{wide}, m, digestA, "aki"), "https://*/"); err != nil {
		t.Errorf("an address of an earlier yes: %v", err)
	}
}

// FuzzSettle: any choices are an error, or grant existing folders under the written path.
func FuzzSettle(f *testing.F) {
	work := realDir(f)
	seed, err := json.Marshal(chosen(work, work))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"mounts":{"work":{"dir":"/tmp/../etc"},"":{}},"http":{"api":{"url":"https://*.*/"}},"exec":{"connect":["a:-1"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c grant.Choices
		if json.Unmarshal(data, &c) != nil {
			return
		}
		p := grant.Propose(nil, asking(), digestA, "aki")
		if p.Settle(c) != nil {
			return
		}
		for name, mount := range p.Consent.Mounts {
			if real, err := filepath.EvalSymlinks(mount.Path); err != nil || real != mount.Path {
				t.Errorf("mount %s is %q, which is %q: %v", name, mount.Path, real, err)
			}
		}
	})
}
