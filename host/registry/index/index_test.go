package index

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/visible"
)

// example is an index with everything that one can have.
const example = `
title: {en: Tools of Example, ja: 例の道具}
later: keys of later versions are ignored
plugins:
  - name: weather
    version: 1.4.2
    reference: oci://registry.example.com/tools/weather:1.4.2
    title: {en: Weather, ja: 天気}
    description: {en: Forecasts for any place, ja: 気象庁の予報を調べます}
    asks: {en: HTTPS to www.jma.go.jp, ja: www.jma.go.jp への HTTPS}
    keywords: [forecast, アメダス]
    license: Apache-2.0
    homepage: https://example.com/weather
    publisher: Example K.K.
    signer: https://github.com/example/tools
  - name: notes
    reference: files/notes.wasm
    digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    description: Weather notes and others
  - {name: rain, reference: "https://plugins.example.com/rain.wasm", keywords: [天気予報]}
`

func mustParse(t *testing.T, text, location string) *document {
	t.Helper()
	d, err := parse([]byte(text), location)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func names(plugins []Plugin) string {
	var list []string
	for _, p := range plugins {
		list = append(list, p.Name)
	}
	return strings.Join(list, " ")
}

func TestParse(t *testing.T) {
	t.Parallel()
	d := mustParse(t, example, "https://tools.example.com/all/index.yaml?key=secret")
	if got := names(d.plugins); got != "weather notes rain" || len(d.omitted) > 0 || d.title["ja"] != "例の道具" {
		t.Fatalf("%s, omitted %q, title %v", got, d.omitted, d.title)
	}
	w, n := d.plugins[0], d.plugins[1]
	if w.Title["ja"] != "天気" || w.Homepage != "https://example.com/weather" || w.Signer != "https://github.com/example/tools" {
		t.Errorf("%+v", w)
	}
	if n.Reference != "https://tools.example.com/all/files/notes.wasm" || n.Description["en"] != "Weather notes and others" {
		t.Errorf("%+v", n)
	}
	if got := mustParse(t, example, "/srv/index.yaml").plugins[1].Reference; got != filepath.FromSlash("/srv/files/notes.wasm") {
		t.Errorf("of a file: %s", got)
	}
}

// TestSchema: the JSON Schema accepts the example, and refuses what parse leaves out.
func TestSchema(t *testing.T) {
	t.Parallel()
	file, err := os.Open("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("hako:index", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("hako:index")
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		`{"plugins":[]}`: true, `{"title":"x"}`: false, `{"plugins":[{"name":"a","reference":"a.wasm","new":1}]}`: true,
		`{"plugins":[{"name":"A","reference":"a.wasm"}]}`: false, `{"plugins":[{"name":"a","reference":"ａ.wasm"}]}`: false,
		`{"plugins":[{"name":"a","reference":"a.wasm","digest":"sha256:00"}]}`: false,
		`{"plugins":[{"name":"a","reference":"a.wasm","keywords":"x"}]}`:       false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("schema: %s: %v", text, err)
		}
		d, err := parse([]byte(text), "/srv/index.json")
		if got := err == nil && len(d.omitted) == 0; got != valid {
			t.Errorf("parse: %s: %+v, %v", text, d, err)
		}
	}
}

// TestOmitted: a plugin that breaks a rule is left out, and the others stay.
func TestOmitted(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{"name":"../evil","reference":"a.wasm"}`:      "the name must be",
		`{"name":"Evil","reference":"a.wasm"}`:         "the name must be",
		`{"name":"w\u0435ather","reference":"a.wasm"}`: "the name must be", // a Cyrillic letter
		`{"name":"a"}`: "the reference is missing",
		`{"name":"a","reference":"javascript:alert(1)"}`:               "neither",
		`{"name":"a","reference":"../../etc/passwd"}`:                  "neither",
		`{"name":"a","reference":"/etc/passwd"}`:                       "neither",
		`{"name":"a","reference":"C:/x.wasm"}`:                         "neither",
		`{"name":"a","reference":"x\\y.wasm"}`:                         "visible",
		`{"name":"a","reference":"file:///etc/passwd"}`:                "neither",
		`{"name":"a","reference":"http://tools.example.com/a.wasm"}`:   "neither",
		`{"name":"a","reference":"https://user:x@example.com/a.wasm"}`: "neither",
		`{"name":"a","reference":"https://ex\u0430mple.com/a.wasm"}`:   "visible",
		`{"name":"a","reference":"oci://example.com/a\u202e"}`:         "visible",
		`{"name":"a","reference":"` + strings.Repeat("a", 2001) + `"}`: "visible",
		`{"name":"a","reference":"a.wasm","digest":"md5:00"}`:          "the digest must be",
		`{"name":"good","reference":"b.wasm"}`:                         "another plugin of that name",
		`{"name":7,"reference":"b.wasm"}`:                              "/name",
		`{"name":"a","reference":"b.wasm","title":{"en":["x"]}}`:       "/title",
		`{"name":"\u001b[2J\u202e","reference":"a.wasm"}`:              "␦[2J␦: the name",
		`["name"]`: "",
		`{"name":"a","reference":"https://tools.example.com/a.wasm","keywords":""}`: "/keywords",
	} {
		text := `{"plugins":[{"name":"good","reference":"a.wasm"},` + entry + `]}`
		d := mustParse(t, text, "https://tools.example.com/index.json")
		if names(d.plugins) != "good" || len(d.omitted) != 1 || !strings.Contains(d.omitted[0], want) {
			t.Errorf("%s: plugins %s, omitted %q, want %q", entry, names(d.plugins), d.omitted, want)
		}
	}
	d := mustParse(t, `{"plugins":[{"name":"a","reference":"b.wasm"},{"name":"b","reference":"oci://r.example.com/b"}]}`,
		"oci://r.example.com/index:1")
	if names(d.plugins) != "b" {
		t.Errorf("a path in a registry: %s, %q", names(d.plugins), d.omitted)
	}
}

// TestHostileTexts: no text has hidden characters, several lines, or an address that is no web page.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	hostile := "a\nb\x1b[31m\u202ec\u2066" + strings.Repeat("\u0301", 50) + strings.Repeat("長", 3000)
	entry := map[string]any{"name": "a", "reference": "a.wasm"}
	for _, key := range []string{"version", "title", "description", "asks", "license", "publisher", "signer"} {
		entry[key] = hostile
	}
	entry["keywords"] = slices.Repeat([]string{hostile}, 30)
	for _, homepage := range []string{"javascript:alert(1)", "http://example.com", "data:text/html,x", "//example.com",
		"https://user@example.com/", "https://ex\u0430mple.com/", "https://", "https://x/\x1b"} {
		entry["homepage"] = homepage
		data, err := json.Marshal(map[string]any{"title": hostile, "plugins": []any{entry}})
		if err != nil {
			t.Fatal(err)
		}
		d := mustParse(t, string(data), "/srv/index.json")
		p := d.plugins[0]
		if p.Homepage != "" || len(p.Keywords) != maxKeywords {
			t.Errorf("%q: %q with %d keywords", homepage, p.Homepage, len(p.Keywords))
		}
		for _, text := range append(p.Keywords, p.Version, p.Title["en"], p.Description["en"], p.Asks["en"], p.License,
			p.Publisher, p.Signer, d.title["en"]) {
			if _, hidden := visible.First(text, ""); hidden || len([]rune(text)) > maxDescription || text == "" {
				t.Fatalf("%d characters: %.80q", len([]rune(text)), text)
			}
		}
	}
}

// TestBounds: an index that is too large, or has too many plugins, is refused.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := func(n int) []byte {
		var b strings.Builder
		b.WriteString(`{"plugins":[`)
		for i := range n {
			fmt.Fprintf(&b, `{"name":"p%d","reference":"a.wasm"},`, i)
		}
		return []byte(strings.TrimSuffix(b.String(), ",") + "]}")
	}
	if _, err := parse(many(maxPlugins+1), "/x"); err == nil || !strings.Contains(err.Error(), "more than 10000 plugins") {
		t.Errorf("too many: %v", err)
	}
	for text, want := range map[string]string{
		strings.Repeat(" ", MaxBytes+1): "larger than 4MiB", "": "not an index", "plugins: {a: 1}": "not an index", "plugin: []": `"plugins" is missing`,
		"<!doctype html>": "not an index", "a: &x [b]\nplugins: [*x]": "not an index", "\x1b[2J: [": "not an index",
	} {
		_, err := parse([]byte(text), "/x")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		} else if _, hidden := visible.First(err.Error(), "\n"); hidden {
			t.Errorf("%.40q: hidden characters in %q", text, err)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	plugins := mustParse(t, example, "/srv/index.yaml").plugins
	for query, want := range map[string]string{
		"": "notes rain weather", "weather": "weather notes", "WEATHER": "weather notes", "ｗｅａｔｈｅｒ": "weather notes",
		"wea": "weather notes", "天気": "weather rain", "天気予報": "rain", "あめだす": "weather", "アメダス": "weather",
		"ｱﾒﾀﾞｽ": "weather", "気象庁": "weather", "jma.go.jp": "weather", "weather apache": "weather", "weather nothing": "",
		"例": "", "forecast": "weather", "note": "notes",
	} {
		if got := names(Search(plugins, query)); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

func TestConfusable(t *testing.T) {
	t.Parallel()
	var plugins []Plugin
	for _, name := range []string{"weather", "vveather", "rnail", "mail", "notes", "0rders", "git-hub"} {
		plugins = append(plugins, Plugin{Name: name})
	}
	markConfusable(plugins, []string{"github", "orders", "notes"})
	var got []string
	for _, p := range plugins {
		got = append(got, p.Name+"="+p.Resembles)
	}
	want := "weather=vveather vveather=weather rnail=mail mail=rnail notes= 0rders=orders git-hub=github"
	if strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzParse: whatever an index holds, its plugins have valid names and texts that can be shown.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example), "/srv/index.yaml", "weather")
	f.Add([]byte(`{"plugins":[{"name":"a","reference":"a/%2e%2e/b.wasm?x#y","title":{"ja":"\u202e"}}]}`), "https://h/x?y", "")
	f.Add([]byte("plugins:\n- {name: a, reference: 'https://h/\x7f'}"), "http://127.0.0.1:1/i", "ァ")
	f.Fuzz(func(t *testing.T, data []byte, location, query string) {
		d, err := parse(data, location)
		if err != nil {
			return
		}
		for _, p := range Search(d.plugins, query) {
			if !manifest.ValidName(p.Name) || strings.ContainsFunc(p.Homepage, notPlain) {
				t.Errorf("%+v", p)
			}
			for _, text := range append(p.Keywords, p.Version, p.Title["en"], p.Title["ja"], p.Description["en"], p.License,
				p.Publisher, p.Signer, p.Asks["ja"]) {
				if _, hidden := visible.First(text, ""); hidden {
					t.Errorf("hidden characters: %q", text)
				}
			}
		}
		for _, line := range d.omitted {
			if _, hidden := visible.First(line, ""); hidden {
				t.Errorf("hidden characters: %q", line)
			}
		}
	})
}

// TestDocumentedIndex: the index of the documentation has no mistake.
func TestDocumentedIndex(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"registries.md", "registries.ja.md"} {
		data, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(data), "# index.yaml\n")
		text, _, _ = strings.Cut(text, "```")
		if !found {
			t.Fatalf("%s has no index.yaml", page)
		}
		d := mustParse(t, text, "https://tools.example.com/index.yaml")
		if len(d.plugins) < 2 || len(d.omitted) > 0 {
			t.Errorf("%s: %s, omitted %q", page, names(d.plugins), d.omitted)
		}
	}
}
