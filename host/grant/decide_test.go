package grant_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	same := manifest.Manifest{Name: "weather", Version: "1.1.0", Permissions: permissions(jma, workspace)}
	less := same
	less.Permissions = permissions(jma)
	more := same
	more.Permissions = permissions(jma, with(workspace, func(p *manifest.FilePermission) { p.Write = true }))
	other := same
	other.Name = "other"
	f := open(t, filepath.Join(t.TempDir(), "consents.yaml"))
	revoked := weather()
	revoked.Name = "revoked"
	approve(t, f, weather())
	approve(t, f, revoked)
	if err := f.Revoke(t.Context(), "revoked", "aki"); err != nil {
		t.Fatal(err)
	}
	gone, unwanted := same, same
	gone.Name, unwanted.Name = "revoked", "unwanted"
	unwanted.Permissions = permissions(jma, workspace)
	if err := f.Decline(t.Context(), &unwanted, digestA, "aki"); err != nil {
		t.Fatal(err)
	}
	if f = open(t, f.String()); len(f.Consents()) != 3 {
		t.Fatalf("%d consents after another reading", len(f.Consents()))
	}

	for _, c := range []struct {
		name     string
		manifest manifest.Manifest
		digest   string
		rule     grant.UpdateRule
		state    grant.State
		reason   string
	}{
		{"approved", same, digestA, grant.Ask, grant.Approved, ""},
		{"new", other, digestA, grant.SamePermissions, grant.Pending, "plugin other is new. To approve it: hako plugin approve other"},
		{"changed", same, digestB, grant.Ask, grant.Pending,
			"the file of plugin weather has changed since version 1.0.0 was approved. To approve it: hako plugin approve weather"},
		{"changed, no rule", same, digestB, "", grant.Pending, "the file of plugin weather has changed"},
		{"changed, asks for no more", same, digestB, grant.SamePermissions, grant.Approved, ""},
		{"changed, asks for less", less, digestB, grant.SamePermissions, grant.Approved, ""},
		{"changed, asks for more", more, digestB, grant.SamePermissions, grant.Pending,
			"plugin weather 1.1.0 asks for more than was approved: workspace: also asks to change and delete files. " +
				"To approve it: hako plugin approve weather"},
		{"the same file, asks for more", more, digestA, grant.SamePermissions, grant.Pending,
			"asks for more than was approved"},
		{"revoked", gone, digestA, grant.SamePermissions, grant.Revoked, "plugin revoked was revoked on "},
		{"not wanted", unwanted, digestA, grant.SamePermissions, grant.Revoked, "plugin unwanted is not wanted since "},
		{"not wanted, another file", unwanted, digestB, grant.Ask, grant.Revoked, "--mount workspace=./workspace"},
		{"revoked and updated", gone, digestB, grant.SamePermissions, grant.Revoked, "plugin revoked was revoked on "},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := f.Decide(&c.manifest, c.digest, c.rule)
			reason := d.Reason.In("en")
			if d.State != c.state || !strings.Contains(reason, c.reason) || c.reason == "" && reason != "" {
				t.Errorf("got %s, %q", d.State, reason)
			}
			if japanese := d.Reason.In("ja"); japanese == reason && reason != "" {
				t.Errorf("in Japanese: %q", japanese)
			}
			if (d.Consent != nil) != (c.state == grant.Approved) {
				t.Errorf("consent: %+v", d.Consent)
			}
			if d.Unrecorded != (d.Consent != nil && c.digest == digestB) {
				t.Errorf("unrecorded: %v", d.Unrecorded)
			}
			if want := strings.Contains(c.name, "asks for more"); want != (len(d.Additions) == 1) {
				t.Errorf("additions: %q", d.Additions)
			}
		})
	}
}

// TestUpdateIsRecorded: an update under the rule keeps the mappings that it still needs, and a later version that asks
// for more again needs a new consent.
func TestUpdateIsRecorded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	f := open(t, path)
	approve(t, f, weather())
	update := &manifest.Manifest{Name: "weather", Version: "1.1.0", Permissions: permissions(jma)}
	d := f.Decide(update, digestB, grant.SamePermissions)
	approve(t, f, *d.Consent)
	f = open(t, path)
	c, ok := f.Lookup("weather", digestB)
	if !ok || c.Version != "1.1.0" || c.ApprovedBy != "update rule same-permissions" || c.ApprovedAt.Equal(noon) ||
		len(c.Mounts) != 0 || c.HTTP["jma"].URL == "" || c.Note == "" {
		t.Errorf("got %+v, %v", c, ok)
	}
	if d := f.Decide(update, digestB, grant.Ask); d.State != grant.Approved || d.Unrecorded {
		t.Errorf("recorded: got %+v", d)
	}
	before := &manifest.Manifest{Name: "weather", Version: "1.0.0", Permissions: permissions(jma, workspace)}
	if d := f.Decide(before, digestA, grant.SamePermissions); d.State != grant.Pending {
		t.Errorf("back to more: got %+v", d)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, filepath.Join(dir, "consents.yaml"))
	c := weather()
	c.Mounts["workspace"] = grant.Mount{Path: "data/ws", Write: true, Deny: []string{"**/.git/**"}, Quota: 5}
	approve(t, f, c)
	consent, _ := f.Lookup("weather", digestA)
	plain := consent
	plain.HTTP = nil
	absolute := consent
	absolute.Mounts = map[string]grant.Mount{"workspace": {Path: filepath.Join(dir, "x")}}
	readWrite := with(workspace, func(p *manifest.FilePermission) { p.Write = true })
	rule := func(url string, private bool) []grant.HTTPRule {
		return []grant.HTTPRule{{Name: "jma", URL: url, Methods: []string{"GET", "HEAD"},
			Paths: jma.Paths, Private: private}}
	}
	mount := func(path string, write bool) []grant.Mount {
		return []grant.Mount{{Name: "workspace", Path: path, Write: write, Deny: []string{"**/.git/**"}, Quota: 5}}
	}
	credentialed := func(url, credential string, private bool) []grant.HTTPRule {
		rules := rule(url, private)
		rules[0].Credential = credential
		return rules
	}
	anyHost := plain
	anyHost.HTTP = map[string]grant.HTTPMapping{"jma": {URL: "https://*"}}
	encrypted := plain
	encrypted.HTTP = map[string]grant.HTTPMapping{"jma": {URL: "https://mirror.example/bosai/",
		Private: true, Credential: "mirror"}}
	database := manifest.SQLPermission{Migrations: []string{"CREATE TABLE a (b)"}}
	for _, test := range []struct {
		name    string
		asked   manifest.Permissions
		consent grant.Consent
		config  map[string]any
		want    grant.Grants
		err     string
	}{
		{"nothing asked", manifest.Permissions{}, consent, nil, grant.Grants{}, ""},
		{"as asked", permissions(jma), plain, nil, grant.Grants{HTTP: rule("https://www.jma.go.jp/bosai/", false)}, ""},
		{"mapped", permissions(jma), consent, nil, grant.Grants{HTTP: rule("http://mirror.example/bosai/", true)}, ""},
		{"configured", permissions(jma), plain, map[string]any{"base_url": "http://localhost:9000"},
			grant.Grants{HTTP: rule("http://localhost:9000", false)}, ""},
		{"configured as mapped", permissions(jma), consent,
			map[string]any{"base_url": "http://Mirror.example:80/bosai"},
			grant.Grants{HTTP: rule("http://Mirror.example:80/bosai", true)}, ""},
		{"configured against the mapping", permissions(jma), consent,
			map[string]any{"base_url": "http://localhost:9000"}, grant.Grants{},
			"plugin weather: HTTP permission jma: config.base_url is http://localhost:9000, but the consent has " +
				"http://mirror.example/bosai/"},
		{"a credential", permissions(secretJMA), plain, nil,
			grant.Grants{HTTP: credentialed("https://www.jma.go.jp/bosai/", "jma", false)}, ""},
		{"another credential, private", permissions(secretJMA), encrypted, nil,
			grant.Grants{HTTP: credentialed("https://mirror.example/bosai/", "mirror", true)}, ""},
		{"private, in plain text", permissions(secretJMA), consent, nil, grant.Grants{},
			`the credential mirror cannot be sent to http://mirror.example/bosai/: the address must start with "https://"`},
		{"a credential to this machine", permissions(secretJMA), plain,
			map[string]any{"base_url": "http://127.0.0.1:9"},
			grant.Grants{HTTP: credentialed("http://127.0.0.1:9", "jma", false)}, ""},
		{"a credential in plain text", permissions(secretJMA), plain, map[string]any{"base_url": "http://jma.example"},
			grant.Grants{},
			`the credential jma cannot be sent to http://jma.example: the address must start with "https://"`},
		{"a credential for any host", permissions(secretJMA), anyHost, nil, grant.Grants{},
			"the address must name the host that gets the credential"},
		{"a database", permissions(database), plain, nil,
			grant.Grants{SQL: &grant.SQL{Migrations: database.Migrations, Quota: 64 << 20}}, ""},
		{"configured as something else", permissions(jma), plain, map[string]any{"base_url": 5}, grant.Grants{},
			"config.base_url is missing"},
		{"another key configured", permissions(jma), plain, map[string]any{"": "http://x", "other": "http://y"},
			grant.Grants{HTTP: rule("https://www.jma.go.jp/bosai/", false)}, ""},
		{"asked read-only, granted write", permissions(workspace), consent, nil,
			grant.Grants{Mounts: mount(filepath.Join(dir, "data", "ws"), false)}, ""},
		{"asked write, granted write", permissions(readWrite), consent, nil,
			grant.Grants{Mounts: mount(filepath.Join(dir, "data", "ws"), true)}, ""},
		{"asked write, granted read-only", permissions(readWrite), absolute, nil,
			grant.Grants{Mounts: []grant.Mount{{Name: "workspace", Path: filepath.Join(dir, "x")}}}, ""},
		{"not mapped", permissions(manifest.FilePermission{Mount: "logs"}), consent, nil, grant.Grants{},
			`mount "logs" is not mapped to a folder: choose one with --mount logs=DIR`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := grant.Resolve(&manifest.Manifest{Name: "weather", Permissions: test.asked},
				&test.consent, test.config, grant.Roots{})
			if test.err == "" && err != nil || test.err != "" && (err == nil ||
				!strings.Contains(err.Error(), test.err)) {
				t.Fatalf("got %v, want %s", err, test.err)
			}
			if !slices.EqualFunc(got.HTTP, test.want.HTTP, equalRules) ||
				!slices.EqualFunc(got.Mounts, test.want.Mounts, equalMounts) ||
				!reflect.DeepEqual(got.SQL, test.want.SQL) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func equalRules(a, b grant.HTTPRule) bool {
	return a.Name == b.Name && a.URL == b.URL && a.Private == b.Private && a.Credential == b.Credential &&
		slices.Equal(a.Methods, b.Methods) && slices.Equal(a.Paths, b.Paths)
}

func equalMounts(a, b grant.Mount) bool {
	return a.Name == b.Name && a.Path == b.Path && a.Write == b.Write && a.Quota == b.Quota &&
		slices.Equal(a.Deny, b.Deny)
}
