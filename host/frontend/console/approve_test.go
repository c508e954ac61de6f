package console_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// put puts a plugin with the manifest into the folder.
func (w *world) put(name, text string) {
	w.t.Helper()
	wasm, err := wasmfile.Embed(guesttest.Build(w.t, "dev/kit/guesttest/guests/hello"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.folder, name+".wasm"), wasm, 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := w.host.Load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

const asking = `
name: asking
version: VERSION
description: {en: "Asks.\nFor much.", ja: 求めます。}
license: Apache-2.0
tools:
  - {name: greet, description: Greets., inputSchema: {type: object}}
  - {name: wait, description: Waits., inputSchema: {type: object}}
  - {name: look, description: Looks., inputSchema: {type: object}}
config:
  word: {type: string, default: Hello}
permissions: {http: [{name: api, url: "https://api.example.com/", methods: [METHODS], reason: {en: to ask, ja: 尋ねるため}}]}
`

func asks(version, methods string) string {
	return strings.NewReplacer("VERSION", version, "METHODS", methods).Replace(asking)
}

type askJSON struct {
	Digest, Version, AdditionsTo, Problem, Remedy string
	Asks, Additions, Gets                         []string
	Ready                                         bool
}

type pluginJSON struct {
	Name, State, Serving, Digest, Title string
	Gets                                []string
	Ask                                 *askJSON
	Consent                             *struct{ ApprovedBy, RevokedBy, Digest string }
}

func TestApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	var p pluginJSON
	b.get("plugins/asking?lang=ja").into(t, &p)
	if p.State != "pending" || p.Ask == nil || !p.Ask.Ready || p.Title != "求めます。" ||
		!strings.Contains(strings.Join(p.Ask.Asks, ""), "尋ねるため") {
		t.Fatalf("before: %+v %+v", p, p.Ask)
	}
	b.get("plugins/asking").into(t, &p)
	if want := "http api: may send GET to https://api.example.com/"; len(p.Ask.Gets) != 1 || p.Ask.Gets[0] != want ||
		p.Ask.Additions != nil {
		t.Errorf("it would get %q, want %q; additions %q", p.Ask.Gets, want, p.Ask.Additions)
	}
	shown := *p.Ask
	for name, body := range map[string]map[string]string{
		"another file": {"digest": "sha256:0", "version": shown.Version},
		"another ask":  {"digest": shown.Digest, "version": "sha256:0"},
		"no version":   {"digest": shown.Digest},
	} {
		if got := b.post("plugins/asking/approve", body); got.status != http.StatusConflict ||
			!strings.Contains(got.body, `"ask":{"digest":"`+shown.Digest) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	p = pluginJSON{}
	b.post("plugins/asking/approve", map[string]string{"digest": shown.Digest, "version": shown.Version}).into(t, &p)
	if p.State != "active" || p.Serving != shown.Digest || p.Ask != nil || p.Consent.ApprovedBy != "admin" ||
		len(p.Gets) != 1 {
		t.Errorf("after: %+v", p)
	}
	w.recorded("plugin.approve begun admin", "plugin.approve ok admin 203.0.113.7")
	p = pluginJSON{}
	b.post("plugins/asking/revoke", map[string]string{"digest": shown.Digest}).into(t, &p)
	if p.State != "revoked" || p.Serving != "" || p.Consent.RevokedBy != "admin" || p.Ask == nil {
		t.Errorf("revoked: %+v", p)
	}
	w.recorded("plugin.revoke ok admin")
}

// recorded checks that the audit log has the lines.
func (w *world) recorded(lines ...string) {
	w.t.Helper()
	log := w.records()
	for _, line := range lines {
		if !strings.Contains(log, line) {
			w.t.Errorf("the audit log has no %q:\n%s", line, log)
		}
	}
}

// TestApproveWhatHasChanged: a yes holds for what was shown, and for nothing that has come in between.
func TestApproveWhatHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	var p pluginJSON
	b.get("plugins/asking").into(t, &p)
	yes := map[string]string{"digest": p.Ask.Digest, "version": p.Ask.Version}
	w.put("asking", asks("1.0.1", "GET, DELETE"))
	got := b.post("plugins/asking/approve", yes)
	if got.status != http.StatusConflict || !strings.Contains(got.body, "DELETE") {
		t.Fatalf("%d %s, want the new one", got.status, got.body)
	}
	if s := w.host.Plugins()[0]; s.State != host.Pending {
		t.Errorf("the plugin is %s", s.State)
	}
	w.approve(b)
	w.put("asking", asks("2.0.0", "GET, DELETE, PUT"))
	p = pluginJSON{}
	b.get("plugins/asking").into(t, &p)
	if p.Ask == nil || p.Ask.AdditionsTo != "1.0.1" || len(p.Ask.Additions) != 1 ||
		!strings.Contains(p.Ask.Additions[0], "PUT") || p.Serving == "" || p.Serving == p.Digest {
		t.Errorf("an update: %+v %+v", p, p.Ask)
	}
	w.put("asking", asks("2.0.1", "GET"))
	p = pluginJSON{}
	got = b.get("plugins/asking")
	if got.into(t, &p); p.Ask == nil || p.Ask.AdditionsTo != "1.0.1" || !strings.Contains(got.body, `"additions":[]`) {
		t.Errorf("an update that asks for less: %s", got.body)
	}
}

// approve says yes to what is asked for now.
func (w *world) approve(b *browser) {
	w.t.Helper()
	var p pluginJSON
	b.get("plugins/asking").into(w.t, &p)
	b.post("plugins/asking/approve", map[string]string{"digest": p.Ask.Digest, "version": p.Ask.Version}).into(w.t, &p)
}

// TestApproveWhatChangedElsewhere: an address that was changed at the command line is another yes.
func TestApproveWhatChangedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	w.approve(b)
	w.put("asking", asks("1.1.0", "GET"))
	var p pluginJSON
	b.get("plugins/asking").into(t, &p)
	file, err := grant.Load(w.consents)
	if err != nil {
		t.Fatal(err)
	}
	consent := file.Consents()[0]
	consent.HTTP = map[string]grant.HTTPMapping{"api": {URL: "https://elsewhere.example.com/", Private: true}}
	if err := file.Approve(t.Context(), consent); err != nil {
		t.Fatal(err)
	}
	got := b.post("plugins/asking/approve", map[string]string{"digest": p.Ask.Digest, "version": p.Ask.Version})
	if got.status != http.StatusConflict ||
		!strings.Contains(got.body, "https://elsewhere.example.com/, where requests to https://api.example.com/ go, private addresses too") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := os.WriteFile(filepath.Join(w.folder, "broken.wasm"), []byte("no wasm"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Viewer)
	for query, want := range map[string]string{
		"": "broken.wasm asking", "?state=pending": "asking", "?state=broken": "broken.wasm", "?q=ASK": "asking",
		"?q=nothing": "",
	} {
		var list struct{ Items []struct{ Name, File string } }
		b.get("plugins"+query).into(t, &list)
		var names []string
		for _, i := range list.Items {
			names = append(names, i.File+i.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	for _, path := range []string{"plugins/nothing", "plugins/%2e%2e", "plugins/%00", "tools/nothing"} {
		if got := b.get(path); got.status != http.StatusNotFound && got.status != http.StatusMovedPermanently &&
			got.status != http.StatusTemporaryRedirect {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := b.get("plugins?state=lost"); got.code() != "invalid" {
		t.Errorf("%d %s", got.status, got.body)
	}
	var overview struct {
		Plugins  map[string]int
		Problems []struct{ Kind, Name string }
	}
	b.get("overview").into(t, &overview)
	if overview.Plugins["broken"] != 1 || overview.Plugins["pending"] != 1 || len(overview.Problems) != 2 {
		t.Errorf("overview = %+v", overview)
	}
}

// TestNotWanted: a plugin that was never approved and is not wanted needs no attention, and can be approved later.
func TestNotWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	var overview struct {
		Plugins  map[string]int
		Problems []console.Problem
	}
	b.get("overview?lang=ja").into(t, &overview)
	if len(overview.Problems) != 1 || overview.Problems[0].Text != "プラグイン asking はまだ承認されていません" {
		t.Errorf("before: %+v", overview)
	}
	var p pluginJSON
	if b.post("plugins/asking/revoke", map[string]string{}).into(t, &p); p.State != "revoked" || p.Ask == nil || !p.Ask.Ready {
		t.Fatalf("not wanted: %+v", p)
	}
	if b.get("overview").into(t, &overview); len(overview.Problems) != 0 || overview.Plugins["pending"] != 0 {
		t.Errorf("not wanted: %+v", overview)
	}
	approve := map[string]string{"digest": p.Ask.Digest, "version": p.Ask.Version}
	if b.post("plugins/asking/approve", approve).into(t, &p); p.State != "active" {
		t.Errorf("approved: %+v", p)
	}
}

// readOnly are consents that this process may not write.
type readOnly struct{ *grant.File }

func (readOnly) Approve(context.Context, grant.Consent) error {
	return errors.New("open /etc/hako/hako.consents.yaml: read-only file system")
}

func (readOnly) Revoke(context.Context, string, string) error {
	return errors.New("open /etc/hako/hako.consents.yaml: read-only file system")
}

func (readOnly) Decline(context.Context, *manifest.Manifest, string, string) error {
	return errors.New("open /etc/hako/hako.consents.yaml: read-only file system")
}

// TestConsentsCannotBeWritten: the admin is told why, and how it can be done all the same.
func TestConsentsCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world, o *console.Options) {
		o.Consents = consents{load: func() (console.Consents, error) {
			file, err := grant.Load(w.consents)
			return readOnly{file}, err
		}}
	})
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	var p pluginJSON
	b.get("plugins/asking").into(t, &p)
	for path, body := range map[string]map[string]string{
		"approve": {"digest": p.Ask.Digest, "version": p.Ask.Version}, "revoke": {"digest": p.Ask.Digest},
	} {
		got := b.post("plugins/asking/"+path, body)
		for _, want := range []string{"read-only file system", "as a user who may write them: hako plugin " + path + " asking"} {
			if got.code() != "unavailable" || !strings.Contains(got.body, want) {
				t.Errorf("%s: %d %s, want %q", path, got.status, got.body, want)
			}
		}
		w.recorded("plugin." + path + " failed admin")
	}
	if err := os.WriteFile(w.consents, []byte("plugins: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.get("plugins/asking"); got.code() != "unavailable" ||
		!strings.Contains(got.body, "The consents cannot be read: ") {
		t.Errorf("a file that cannot be understood: %d %s", got.status, got.body)
	}
}
