package grant_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// weather returns a consent with a value in every field.
func weather() grant.Consent {
	return grant.Consent{
		Name: "weather", Version: "1.0.0", Digest: digestA, Asked: permissions(secretJMA, workspace,
			manifest.SQLPermission{Migrations: []string{"a"}}), ApprovedAt: noon, ApprovedBy: "aki",
		Note: "for the demo: yes",
		Mounts: map[string]grant.Mount{"workspace": {Name: "workspace", Path: "data/ws",
			Deny: []string{"**/.git/**"}, Quota: 100 << 20}},
		HTTP: map[string]grant.HTTPMapping{"jma": {URL: "http://mirror.example/bosai/",
			Private: true, Credential: "mirror"}},
	}
}

// secretJMA is jma with a credential.
var secretJMA = with(jma, func(p *httpPermission) { p.Credential = "jma" })

const weatherFile = `# What the operator of hako has consented to: which plugins may run, and what each of them may do.
#
# hako plugin approve and hako plugin revoke write this file; it may also be edited by hand, reviewed and kept in git.
# A consent holds for the file with that digest, and for what was asked when it was given. Relative paths start at the
# folder of this file. Comments are lost when hako writes the file: keep them in note.
plugins:
  weather:
    version: 1.0.0
    digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    permissions: PERMISSIONS
    approvedAt: "2026-01-02T12:00:00Z"
    approvedBy: aki
    note: 'for the demo: yes'
    asked:
      http:
        - name: jma
          url: https://www.jma.go.jp/bosai/
          configKey: base_url
          paths: [const/area.json, forecast/**]
          credential: jma
      files:
        - mount: workspace
          access: read-only
      sql:
        quota: 64MiB
    mounts:
      workspace:
        path: data/ws
        access: read-only
        deny: ['**/.git/**']
        quota: 100MiB
    http:
      jma:
        url: http://mirror.example/bosai/
        private: true
        credential: mirror
`

func open(t *testing.T, path string) *grant.File {
	t.Helper()
	f, err := grant.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func approve(t *testing.T, f *grant.File, c grant.Consent) {
	t.Helper()
	if err := f.Approve(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestApproveIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "consents.yaml")
	f := open(t, path)
	approve(t, f, weather())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(weatherFile, "PERMISSIONS", grant.Digest(weather().Asked), 1)
	if string(data) != want {
		t.Errorf("got\n%s\nwant\n%s", data, want)
	}
	for name, file := range map[string]*grant.File{"the same": f, "loaded anew": open(t, path)} {
		c, ok := file.Lookup("weather", digestA)
		if !ok {
			t.Fatalf("%s: no consent", name)
		}
		original := weather()
		if !reflect.DeepEqual(c.Mounts, original.Mounts) || !reflect.DeepEqual(c.HTTP, original.HTTP) ||
			c.Note != original.Note || !c.ApprovedAt.Equal(noon) ||
			grant.Digest(c.Asked) != grant.Digest(original.Asked) {
			t.Errorf("%s: got %+v", name, c)
		}
		if _, ok := file.Lookup("weather", digestB); ok {
			t.Errorf("%s: the consent holds for another digest", name)
		}
	}
}

func TestFileIsStable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"c", "a", "b"}
	var contents []string
	for i := range 2 {
		path := filepath.Join(dir, fmt.Sprint(i))
		f := open(t, path)
		for j := range names {
			c := weather()
			c.Name = names[(i+j)%len(names)]
			approve(t, f, c)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(data))
		for j, c := range f.Consents() {
			if want := []string{"a", "b", "c"}[j]; c.Name != want {
				t.Errorf("consent %d: got %s, want %s", j, c.Name, want)
			}
		}
	}
	if contents[0] != contents[1] {
		t.Errorf("the order of approvals changes the file:\n%s\n%s", contents[0], contents[1])
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	f := open(t, path)
	approve(t, f, weather())
	if err := f.Revoke(t.Context(), "wether", "aki"); !errors.Is(err, grant.ErrNoConsent) ||
		!strings.Contains(err.Error(), `did you mean "weather"?`) {
		t.Errorf("unknown plugin: got %v", err)
	}
	for range 2 {
		if err := f.Revoke(t.Context(), "weather", "aki"); err != nil {
			t.Fatal(err)
		}
	}
	f = open(t, path)
	if _, ok := f.Lookup("weather", digestA); ok {
		t.Error("the consent is still in force")
	}
	if c := f.Consents()[0]; c.RevokedAt.IsZero() || c.RevokedBy != "aki" || len(c.Mounts) != 1 {
		t.Errorf("got %+v", c)
	}
	approve(t, f, weather())
	if _, ok := f.Lookup("weather", digestA); !ok {
		t.Error("approving again does not put the consent in force")
	}
}

func TestApproveRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*grant.Consent)
		want   string
	}{
		"name":   {func(c *grant.Consent) { c.Name = "../x" }, `"../x": the name is not a valid plugin name`},
		"digest": {func(c *grant.Consent) { c.Digest = "abc" }, "the digest must be sha256:"},
		"unmapped mount": {func(c *grant.Consent) { c.Mounts = nil },
			`mount "workspace" is not mapped to a folder: choose one with --mount workspace=DIR`},
		"unknown mount": {func(c *grant.Consent) { c.Mounts["workspce"] = grant.Mount{Path: "x"} },
			`unknown mount "workspce": did you mean "workspace"?`},
		"no folder": {func(c *grant.Consent) { c.Mounts["workspace"] = grant.Mount{} },
			"the folder must be written out"},
		"home": {func(c *grant.Consent) { c.Mounts["workspace"] = grant.Mount{Path: "~/x"} },
			`the folder must be written out, without "~"`},
		"deny": {func(c *grant.Consent) {
			c.Mounts["workspace"] = grant.Mount{Path: "x",
				Deny: []string{"["}}
		}, `deny: "[" is not a valid glob`},
		"quota": {func(c *grant.Consent) { c.Mounts["workspace"] = grant.Mount{Path: "x", Quota: -1} },
			"the quota must not be below zero"},
		"unknown address": {func(c *grant.Consent) { c.HTTP["jna"] = grant.HTTPMapping{} },
			`unknown HTTP permission "jna": did you mean "jma"?`},
		"address": {func(c *grant.Consent) { c.HTTP["jma"] = grant.HTTPMapping{URL: "mirror"} },
			`HTTP permission jma: url "mirror" must start with "https://"`},
		"credential": {func(c *grant.Consent) { c.HTTP["jma"] = grant.HTTPMapping{Credential: "My key"} },
			`HTTP permission jma: "My key" is not a credential name`},
		"none asked for": {func(c *grant.Consent) { c.Asked.HTTP[0].Credential = "" },
			`HTTP permission jma: the plugin asks for no credential there: remove "mirror"`},
		"not UTF-8": {func(c *grant.Consent) { c.Note = "\xff" }, "is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "consents.yaml")
			consent := weather()
			c.change(&consent)
			if err := open(t, path).Approve(t.Context(), consent); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Error("a file was written")
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	valid := strings.Replace(weatherFile, "PERMISSIONS", grant.Digest(weather().Asked), 1)
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key": {"approvedBy:", "aprovedBy:",
			`12:5: plugins.weather: unknown key "aprovedBy": did you mean "approvedBy"?`},
		"unknown section": {"plugins:", "plugin:", `6:1: unknown key "plugin": did you mean "plugins"?`},
		"more than was asked": {"access: read-only\n      sql", "access: read-write\n      sql",
			"10:18: plugins.weather.permissions: is not the digest of the permissions under asked"},
		"access": {"access: read-only\n        deny", "access: all\n        deny",
			`plugins.weather.mounts.workspace.access: must be "read-only" or "read-write"`},
		"quota": {"100MiB", "100", `plugins.weather.mounts.workspace.quota: must be a size`},
		"time": {`"2026-01-02T12:00:00Z"`, "yesterday",
			`plugins.weather.approvedAt: must be a time such as`},
		"unmapped mount": {"    mounts:\n      workspace:", "    mounts:\n      work:", `unknown mount "work"`},
		"repeated plugin": {"    http:\n      jma:", "  weather:\n    http:\n      jma:",
			`the key "weather" already occurs in line 7`},
		"not YAML": {"plugins:", "plugins: [", "YAML syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "consents.yaml")
			if err := os.WriteFile(path, []byte(strings.Replace(valid, c.old, c.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := grant.Load(path)
			var problems *manifest.Error
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := grant.Load(t.TempDir()); err == nil {
		t.Error("a folder is accepted")
	}
}

// TestApproveAtOnce: concurrent approvals through several Files, as in several processes, are all kept.
func TestApproveAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	var wg sync.WaitGroup
	const n = 12
	for i := range n {
		wg.Go(func() {
			f, err := grant.Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			c := weather()
			c.Name = fmt.Sprintf("p%d", i)
			if err := f.Approve(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := len(open(t, path).Consents()); got != n {
		t.Errorf("%d of %d approvals are kept", got, n)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestApproveKeepsModeAndLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither")
	}
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.yaml"), filepath.Join(dir, "link.yaml")
	if err := errors.Join(os.WriteFile(target, []byte("plugins: {}\n"), 0o600),
		os.Symlink("target.yaml", link)); err != nil {
		t.Fatal(err)
	}
	approve(t, open(t, link), weather())
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode: %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	if len(open(t, target).Consents()) != 1 {
		t.Error("the target was not written")
	}
}

func TestApproveFailsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "consents.yaml")
	f := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Approve(ctx, weather()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
	if err := os.WriteFile(path, []byte("plugins: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Approve(t.Context(), weather()); err == nil {
		t.Error("a file that cannot be understood was overwritten")
	}
	if data, _ := os.ReadFile(path); string(data) != "plugins: 5\n" {
		t.Errorf("got %q", data)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(strings.Replace(weatherFile, "PERMISSIONS", grant.Digest(weather().Asked), 1)))
	f.Add([]byte("plugins: {a: {digest: x}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "consents.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := grant.Load(path)
		if err != nil {
			return
		}
		// A file that was read can be written, and reads back the same.
		before := file.Consents()
		approve(t, file, grant.Consent{Name: "another", Digest: digestA})
		after := map[string]grant.Consent{}
		for _, c := range open(t, path).Consents() {
			after[c.Name] = c
		}
		for _, c := range before {
			if got := after[c.Name]; c.Name != "another" && (got.Digest != c.Digest ||
				grant.Digest(got.Asked) != grant.Digest(c.Asked) || len(got.Mounts) != len(c.Mounts)) {
				t.Fatalf("%s: got %+v, want %+v", c.Name, got, c)
			}
		}
	})
}
