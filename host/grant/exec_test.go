package grant_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

func programs(names ...string) manifest.Permissions {
	return manifest.Permissions{Exec: &manifest.ExecPermission{Programs: names,
		Reason: manifest.Text{"en": "To build.", "ja": "ビルドのため。"}}}
}

func shell(asked manifest.Permissions, exec grant.Exec) grant.Consent {
	return grant.Consent{Name: "shell", Version: "1.0.0", Digest: digestA, Asked: asked, ApprovedAt: noon,
		ApprovedBy: "aki", Exec: exec}
}

func TestExecIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	want := grant.Exec{Programs: []string{"git", "/opt/tool/bin/tool"}, Env: []string{"GOPROXY"},
		Connect: []string{"github.com:443", "*.example.com:8080:private"}, Unconfined: true}
	approve(t, open(t, path), shell(programs("*"), want))
	c, ok := open(t, path).Lookup("shell", digestA)
	if !ok || !reflect.DeepEqual(c.Exec, want) {
		t.Fatalf("got %+v, %v", c.Exec, ok)
	}
	grants, err := grant.Resolve(&manifest.Manifest{Name: "shell", Permissions: programs("*")}, &c, nil, grant.Roots{})
	if err != nil || !reflect.DeepEqual(*grants.Exec, want) {
		t.Errorf("granted %+v, %v", grants.Exec, err)
	}
}

func TestExecRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked manifest.Permissions
		exec  grant.Exec
		want  string
	}{
		"no programs": {programs("*"), grant.Exec{},
			"no programs are named that it may run: name them with --program"},
		"none of its own": {programs("git"), grant.Exec{}, "no programs are named"},
		"not asked for": {programs("git"), grant.Exec{Programs: []string{"ls"}},
			"it does not ask to run ls, only git"},
		"all, not asked": {programs("git"), grant.Exec{Programs: []string{"*"}},
			"it does not ask to run *, only git"},
		"all and one": {programs("*"), grant.Exec{Programs: []string{"*", "git"}}, `"*" allows all programs`},
		"a pattern": {programs("*"), grant.Exec{Programs: []string{"git*"}},
			"neither the name of a program nor its absolute path"},
		"a relative path": {programs("*"), grant.Exec{Programs: []string{"./git"}},
			"neither the name of a program nor its absolute path"},
		"a variable": {programs("git"), grant.Exec{Programs: []string{"git"}, Env: []string{"A-B"}},
			`the variable "A-B" cannot be passed on`},
		"the search path": {programs("git"), grant.Exec{Programs: []string{"git"}, Env: []string{"PATH"}},
			`the variable "PATH" cannot be passed on`},
		"port 0": {programs("git"), grant.Exec{Programs: []string{"git"}, Connect: []string{"a.test:0"}},
			`"a.test:0": port "0" is not a number from 1 to 65535`},
		"no port": {programs("git"), grant.Exec{Programs: []string{"git"}, Connect: []string{"a.test"}},
			"it is not HOST:PORT or HOST:PORT:private"},
		"a port alone": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"443"}}, "it is not HOST:PORT"},
		"an empty host": {programs("git"), grant.Exec{Programs: []string{"git"}, Connect: []string{":443"}},
			`host "" is not a valid name`},
		"a URL": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"https://a.test"}}, "port \"//a.test\" is not a number"},
		"a range": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"10.0.0.0/8:443"}}, "is not a valid name"},
		"a short address": {programs("git"), grant.Exec{Programs: []string{"git"}, Connect: []string{"127.1:443"}},
			"neither a name nor an IP address"},
		"any address": {programs("git"), grant.Exec{Programs: []string{"git"}, Connect: []string{"0.0.0.0:443"}},
			"no grant allows the address 0.0.0.0"},
		"a multicast": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"[ff02::1]:443"}}, "no grant allows the address"},
		"a zone": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"[fe80::1%eth0]:443"}}, "has a zone"},
		"a wildcard": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"a.*.test:443"}}, "is not a valid name"},
		"another word": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"a.test:443:public"}}, "it is not HOST:PORT"},
		"a line break": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: []string{"a.test\nb.test:443"}}, "is not a valid name"},
		"too many hosts": {programs("git"), grant.Exec{Programs: []string{"git"},
			Connect: slices.Repeat([]string{"a.test:443"}, 65)}, "there are 65: name at most 64"},
		"nothing to grant": {permissions(), grant.Exec{Programs: []string{"git"}}, "it does not ask to run commands"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(t, filepath.Join(t.TempDir(), "consents.yaml")).Approve(t.Context(), shell(c.asked, c.exec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestExecOldPorts: a consent of an older version with ports of any host stays recorded, grants nothing, and explains
// the remedy.
func TestExecOldPorts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	approve(t, open(t, path), shell(programs("git"), grant.Exec{Programs: []string{"git"}, Ports: []uint16{443, 22}}))
	f := open(t, path)
	c, ok := f.Lookup("shell", digestA)
	if !ok || !slices.Equal(c.Exec.Ports, []uint16{443, 22}) {
		t.Fatalf("read %+v, %v", c.Exec, ok)
	}
	m := &manifest.Manifest{Name: "shell", Permissions: programs("git")}
	if g, err := grant.Resolve(m, &c, nil, grant.Roots{}); err == nil || g.Exec != nil ||
		!strings.Contains(err.Error(), "(ports: [443 22]), which hako no longer supports: name the hosts: hako plugin "+
			"approve shell --connect HOST:443") {
		t.Errorf("granted %+v, %v", g.Exec, err)
	}
	// A new approval removes them.
	p := grant.Propose(f.Consents(), m, digestA, "aki")
	if err := p.Settle(p.Choices()); err != nil || len(p.Consent.Exec.Ports)+len(p.Consent.Exec.Connect) > 0 {
		t.Errorf("hostVariables %+v, %v", p.Consent.Exec, err)
	}
	spoil(t, path, "[443, 22]", "[70000]")
	if _, err := grant.Load(path); err == nil || !strings.Contains(err.Error(), "ports are numbers from 1 to 65535") {
		t.Errorf("got %v", err)
	}
}

func TestExecAdditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		approved, asked manifest.Permissions
		want            []string
	}{
		{"the same", programs("git", "ls"), programs("ls", "git"), nil},
		{"fewer", programs("git", "ls"), programs("git"), nil},
		{"none any more", programs("git"), permissions(), nil},
		{"one of any", programs("*"), programs("git"), nil},
		{"new", permissions(), programs("git"),
			[]string{"may run programs of your machine on the files in these folders: git, because: To build."}},
		{"new, any", permissions(), programs("*"), []string{"may run those programs of your machine that you name, " +
			"on the files in these folders, because: To build."}},
		{"more", programs("git"), programs("rm", "git", "ls"), []string{"exec: also asks to run ls, rm"}},
		{"any", programs("git"), programs("*"), []string{"exec: now asks to run whichever programs you name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := grant.Additions(c.approved, c.asked, "en"); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if same := grant.Digest(c.approved) == grant.Digest(c.asked); same != (c.name == "the same") {
				t.Errorf("the digests are the same: %v", same)
			}
		})
	}
	if got := grant.Explain(programs("git"), "ja"); len(got) != 1 || !strings.Contains(got[0],
		"プログラムを実行できます: git。理由: ビルドのため。") {
		t.Errorf("in Japanese: %q", got)
	}
}

// TestExecUpdate: a new version that asks for less keeps the remaining settings, and never gets a program that the
// operator did not name.
func TestExecUpdate(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "consents.yaml"))
	approve(t, f, shell(programs("git", "ls"), grant.Exec{Programs: []string{"git"}}))
	for _, test := range []struct {
		asked manifest.Permissions
		want  string
	}{
		{programs("git"), "git"}, {programs("ls"), ""}, {permissions(), ""},
	} {
		m := &manifest.Manifest{Name: "shell", Version: "2.0.0", Permissions: test.asked}
		d := f.Decide(m, digestB, grant.SamePermissions)
		if d.State != grant.Approved {
			t.Fatalf("%+v", d)
		}
		got := ""
		if grants, err := grant.Resolve(m, d.Consent, nil, grant.Roots{}); err == nil && grants.Exec != nil {
			got = strings.Join(grants.Exec.Programs, " ")
		}
		if got != test.want {
			t.Errorf("asking for %v gets %q, want %q", test.asked.Exec, got, test.want)
		}
	}
}

func spoil(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
