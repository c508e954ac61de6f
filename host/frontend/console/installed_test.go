package console_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/grant"
)

// installed is a console.Installed with the newer version and the one before.
type installed struct {
	*folder
	newer, previous []byte
}

func (i *installed) Origin(p *host.Status) (from, previous string, ok bool, err error) {
	return "oci://registry.example/asking:1", "0.9.0", filepath.Dir(p.Path) == i.dir, nil
}

func (i *installed) Newer(context.Context, string) (*console.Addition, error) {
	return i.version(i.newer)
}

func (i *installed) Previous(context.Context, string) (*console.Addition, error) {
	return i.version(i.previous)
}

func (i *installed) version(wasm []byte) (*console.Addition, error) {
	if wasm == nil {
		return nil, nil
	}
	p, err := i.Read(wasm, "oci://registry.example/asking:2", "")
	if err == nil {
		p.Changes = func(language string) ([]string, error) { return []string{"+ " + payload + language}, nil }
	}
	return p, err
}

func (i *installed) Remove(_ context.Context, name string) ([]string, error) {
	return []string{"a copy"}, os.Remove(filepath.Join(i.dir, name+".wasm"))
}

// TestInstalled: a plugin is updated and rolled back as it was shown, and removed with its consent.
func TestInstalled(t *testing.T) {
	t.Parallel()
	i := &installed{folder: &folder{maxSize: 16 << 20, state: t.TempDir()}}
	w := newWorld(t, func(w *world, o *console.Options) {
		i.dir = w.folder
		o.Folder, o.Installed = i.folder, i
	})
	w.put("asking", asks("1.0.0", "GET"))
	b := w.as(console.Admin)
	var p struct {
		pluginJSON
		Installed *struct{ From, Previous string }
	}
	b.get("plugins/asking").into(t, &p)
	if p.Installed == nil || p.Installed.Previous != "0.9.0" || p.Installed.From != "oci://registry.example/asking:1" {
		t.Fatalf("%+v", p.Installed)
	}
	if got := b.post("plugins/asking/newer", map[string]any{}); got.body != "{}\n" {
		t.Errorf("nothing is newer: %s", got.body)
	}
	if got := b.post("plugins/asking/update", map[string]any{"digest": p.Digest}); got.code() != "conflict" {
		t.Errorf("an update to nothing: %s", got.body)
	}
	var digests [2]string
	i.newer, digests[0] = pluginOf(t, asks("2.0.0", "GET, POST"))
	i.previous, digests[1] = pluginOf(t, asks("0.9.0", "GET"))
	type shown struct {
		Version, Digest string
		Changes         []string
	}
	for n, step := range []struct{ read, place string }{{"newer", "update"}, {"previous", "rollback"}} {
		var newer struct{ Newer shown }
		var got shown
		answer := b.post("plugins/asking/"+step.read+"?lang=ja", map[string]any{})
		checkText(t, step.read, answer)
		if answer.into(t, &got); step.read == "newer" {
			answer.into(t, &newer)
			got = newer.Newer
		}
		if got.Digest != digests[n] || len(got.Changes) != 1 || !strings.HasSuffix(got.Changes[0], "ja") {
			t.Errorf("%s: %+v", step.read, got)
		}
		if got := b.post("plugins/asking/"+step.place, map[string]any{"digest": p.Digest}); got.code() != "conflict" {
			t.Errorf("%s to another than was shown: %s", step.place, got.body)
		}
		b.post("plugins/asking/"+step.place, map[string]any{"digest": digests[n]}).into(t, new(any))
		if b.get("plugins/asking").into(t, &p); p.Digest != digests[n] || p.State != "pending" {
			t.Errorf("after %s: %+v", step.place, p)
		}
	}
	file, err := grant.Load(w.consents)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Approve(t.Context(), grant.Consent{Name: "asking", Version: "0.9.0", Digest: p.Digest, ApprovedBy: "aki"}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"sha256:other", ""} { // it does not serve, so it has no other digest either
		if got := b.post("plugins/asking/remove", map[string]any{"digest": other}); got.code() != "conflict" {
			t.Errorf("another file, %q: %s", other, got.body)
		}
	}
	if got := b.post("plugins/asking/remove", map[string]any{"digest": p.Digest}); got.body != `{"left":["a copy"]}`+"\n" {
		t.Errorf("remove: %s", got.body)
	}
	if got := b.get("plugins/asking"); got.status != 404 {
		t.Errorf("after removing: %s", got.body)
	}
	if err := file.Refresh(t.Context()); err != nil || len(file.Consents()) != 0 {
		t.Errorf("the consent is left: %v, %v", file.Consents(), err)
	}
	for _, action := range []string{"plugin.update", "plugin.rollback", "plugin.remove"} {
		if !strings.Contains(w.records(), action+" ok admin") {
			t.Errorf("no %s in %s", action, w.records())
		}
	}
}
