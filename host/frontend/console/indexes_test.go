package console_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry/index"
)

// indexes is a console.Indexes with files by name.
type indexes struct {
	folder    *folder
	files     map[string][]byte
	plugins   []index.Plugin
	installed []string
}

func (x *indexes) Search(_ context.Context, query string, installed []string) ([]index.Plugin, []index.Source) {
	x.installed = installed
	return index.Search(x.plugins, query), []index.Source{{Location: "https://tools.example/index.yaml",
		Title: manifest.Text{"en": "Tools", "ja": "道具"}, Plugins: len(x.plugins), Fetched: time.Unix(1e9, 0),
		Problem: "<no such host>", Omitted: []string{"line 1"}}}
}

func (x *indexes) Read(_ context.Context, at, name string) (*console.Addition, error) {
	wasm, ok := x.files[name]
	if !ok || at != "https://tools.example/index.yaml" {
		return nil, errors.New("the index has no such plugin")
	}
	return x.folder.Read(wasm, "oci://registry.example/"+name, "")
}

func newIndexWorld(t *testing.T) (*world, *indexes) {
	x := &indexes{files: map[string][]byte{}}
	w := newWorld(t, func(w *world, o *console.Options) {
		x.folder = &folder{dir: w.folder, state: t.TempDir(), maxSize: 16 << 20}
		o.Folder, o.Indexes = x.folder, x
	})
	return w, x
}

// TestAddListed: a plugin of an index is shown as it is, and added as it was shown, to wait for consent.
func TestAddListed(t *testing.T) {
	t.Parallel()
	w, x := newIndexWorld(t)
	b := w.as(console.Admin)
	wasm, digest := pluginOf(t, asks("1.0.0", "GET"))
	x.files["asking"] = wasm
	listing := map[string]any{"index": "https://tools.example/index.yaml", "name": "asking"}
	var shown struct {
		Name, Digest, From string
		Size               int
		Asks               []string
	}
	b.post("index/read?lang=ja", listing).into(t, &shown)
	if shown.Name != "asking" || shown.Digest != digest || shown.From != "oci://registry.example/asking" ||
		shown.Size != len(wasm) || !strings.Contains(strings.Join(shown.Asks, ""), "尋ねるため") {
		t.Errorf("%+v", shown)
	}
	if left, _ := os.ReadDir(w.folder); len(left) != 0 {
		t.Errorf("what was only shown is kept: %v", left)
	}
	if got := b.post("index/add", listing); got.code() != "invalid" {
		t.Errorf("without a digest: %d %s", got.status, got.body)
	}
	listing["digest"] = digest
	x.files["asking"], _ = pluginOf(t, asks("2.0.0", "GET, POST"))
	if got := b.post("index/add", listing); got.code() != "conflict" {
		t.Errorf("another than was shown: %d %s", got.status, got.body)
	}
	x.files["asking"] = wasm
	b.post("index/add", listing).into(t, new(any))
	var p pluginJSON
	b.get("plugins/asking").into(t, &p)
	if p.State != "pending" || p.Serving != "" || p.Digest != digest {
		t.Errorf("after adding: %+v", p)
	}
	if got := b.post("index/add", listing); got.code() != "conflict" {
		t.Errorf("again: %d %s", got.status, got.body)
	}
	if !strings.Contains(w.records(), "plugin.add ok admin") || !strings.Contains(b.get("audit?action=plugin.add").body, "oci://registry.example/asking") {
		t.Errorf("records: %s", w.records())
	}
	for _, wrong := range []map[string]any{{"index": "/etc/passwd", "name": "asking"}, {"index": listing["index"], "name": "none"}} {
		if got := b.post("index/read", wrong); got.code() != "invalid" {
			t.Errorf("%v: %d %s", wrong, got.status, got.body)
		}
	}
	x.folder.problem = errors.New("read-only file system")
	if got := b.post("index/read", listing); got.code() != "unavailable" {
		t.Errorf("without a folder: %d %s", got.status, got.body)
	}
}

// TestSearchIndexes: what an index says arrives as text in the reader's language, with the version that is installed.
func TestSearchIndexes(t *testing.T) {
	t.Parallel()
	w, x := newIndexWorld(t)
	w.put("asking", asks("1.0.0", "GET"))
	for range 201 {
		x.plugins = append(x.plugins, index.Plugin{Name: "other", Keywords: []string{"many"}})
	}
	x.plugins = append(x.plugins, index.Plugin{Name: "asking", Version: "2.0.0", Title: manifest.Text{"en": payload, "ja": "尋ねる"},
		Asks: manifest.Text{"en": payload}, Reference: "oci://registry.example/asking", Resembles: "askinq"})
	b := w.as(console.Admin)
	var found struct {
		Items   []struct{ Name, Title, Version, Installed, Resembles string }
		Total   int
		Indexes []struct {
			Title   string
			Plugins int
			Omitted []string
		}
	}
	got := b.get("index?lang=ja&q=%E5%B0%8B")
	checkText(t, "index", got)
	got.into(t, &found)
	if found.Total != 1 || found.Items[0].Title != "尋ねる" || found.Items[0].Installed != "1.0.0" ||
		found.Items[0].Resembles != "askinq" || found.Indexes[0].Title != "道具" || found.Indexes[0].Plugins != 202 {
		t.Errorf("%+v", found)
	}
	if strings.Join(x.installed, " ") != "asking" {
		t.Errorf("installed: %q", x.installed)
	}
	checkText(t, "index in English", b.get("index?q=asking"))
	if b.get("index?q=many").into(t, &found); found.Total != 201 || len(found.Items) != 200 {
		t.Errorf("%d of %d", len(found.Items), found.Total)
	}
	without := newWorld(t, nil).as(console.Admin)
	if got := without.get("index"); got.body != `{"items":[],"total":0,"indexes":[]}`+"\n" {
		t.Errorf("without an index: %d %s", got.status, got.body)
	}
	if got := without.post("index/read", map[string]any{"index": filepath.Join(w.folder, "x"), "name": "x"}); got.status == 200 {
		t.Errorf("without an index: %d %s", got.status, got.body)
	}
}

// servers is a console.Servers with one server.
type servers struct{ query string }

func (s *servers) SearchServers(_ context.Context, query string, limit int) (string, []index.Server, bool, error) {
	if s.query = query; query == "down" {
		return "", nil, false, errors.New("no such host")
	}
	return "https://registry.example", []index.Server{{Name: payload, Setups: []index.Setup{{Kind: "npm", Reason: payload}}}}, limit == 50, nil
}

// TestSearchServers: what a registry of MCP servers says arrives as text, and without one nothing is asked.
func TestSearchServers(t *testing.T) {
	t.Parallel()
	s := &servers{}
	b := newWorld(t, func(_ *world, o *console.Options) { o.Servers = s }).as(console.Admin)
	got := b.get("index/servers?q=weather")
	checkText(t, "servers", got)
	if s.query != "weather" || !strings.Contains(got.body, `"more":true`) || !strings.Contains(got.body, `"kind":"npm"`) {
		t.Errorf("%q: %s", s.query, got.body)
	}
	if got := b.get("index/servers?q=down"); got.code() != "invalid" {
		t.Errorf("a registry that is down: %s", got.body)
	}
	if got := newWorld(t, nil).as(console.Admin).get("index/servers"); got.body != `{"items":[]}`+"\n" {
		t.Errorf("without a registry: %s", got.body)
	}
}
