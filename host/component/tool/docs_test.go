package tool

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

// written is the output of wasm-tools 1.262 for a package with comments.
const written = `{"docs":"The package.","worlds":{"w":{"docs":"The world.","funcs":{"add":{"docs":"Imported add."},` +
	`"one":{"docs":"One."}},"interfaces":{"k":{"funcs":{"f":{"docs":"F."}}}},` +
	`"interface_exports":{"k":{"funcs":{"g":{"docs":"Inline one."}}}},"func_exports":{"add":{"docs":"Adds numbers."}}}},` +
	`"interfaces":{"i":{"docs":"An interface.","funcs":{"find":{"docs":"Finds things.\n\nSecond paragraph."}}}}}`

func TestDocs(t *testing.T) {
	two := strings.Replace(written, `"worlds":{`, `"worlds":{"v":{"funcs":{"one":{"docs":"Another one."},"add":{"docs":"Adds numbers."}}},`, 1)
	for _, test := range []struct{ name, docs, export, want string }{
		{"function", "\x01" + written, "one", "One."},
		{"function that is imported too", "\x01" + written, "add", "Adds numbers."},
		{"interface", "\x01" + written, "a:b/i@1.0.0#find", "Finds things.\n\nSecond paragraph."},
		{"interface without a version", "\x01" + written, "a:b/i#find", "Finds things.\n\nSecond paragraph."},
		{"interface in a world", "\x01" + written, "k#g", "Inline one."},
		{"interface in a world, among the imports", "\x01" + written, "k#f", "F."},
		{"no comment", "\x01" + written, "two", ""},
		{"worlds that agree", "\x01" + two, "add", "Adds numbers."},
		{"worlds that do not", "\x01" + two, "one", ""},
		{"version 0", "\x00" + `{"interfaces":{"i":{"funcs":{"f":"Old."}}}}`, "a:b/i#f", "Old."},
		{"hidden characters", "\x01" + `{"worlds":{"w":{"funcs":{"f":{"docs":" a\u001b[2Jb\u202ec \n"}}}}}`, "f", "a[2Jbc"},
		{"too long", "\x01" + `{"worlds":{"w":{"funcs":{"f":{"docs":"` + strings.Repeat("a", maxComment+1) + `"}}}}}`, "f", ""},
		{"future version", "\x02" + written, "one", ""},
		{"not JSON", "\x01{", "one", ""},
		{"wrong types", "\x01" + `{"worlds":{"w":{"funcs":{"one":7}}}}`, "one", ""},
		{"empty", "", "one", ""},
	} {
		if got := readDocs([]byte(test.docs)).of(test.export); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A tool without a description in the manifest has the comment of its function.
func TestDocsBecomeDescriptions(t *testing.T) {
	c := exporting(map[string]*component.Func{"a:b/i@1.0.0#find": function(nil, stringType), "one": function(nil, nil)})
	c.Docs = []byte("\x01" + `{"interfaces":{"i":{"funcs":{"find":{"docs":"Finds things."}}}}}`)
	a, err := New(c, bare)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := a.Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	descriptions := map[string]string{}
	for _, tool := range m.Tools {
		descriptions[tool.Name] = tool.Description["en"]
	}
	if descriptions["a_b_i_1_0_0_find"] != "Finds things." || descriptions["one"] != "one: func()" {
		t.Errorf("%v", descriptions)
	}
}

func FuzzDocs(f *testing.F) {
	f.Add([]byte("\x01"+written), "a:b/i@1.0.0#find")
	f.Add([]byte("\x01"+written), "k#g")
	f.Add([]byte("\x00"+`{"worlds":{"w":{"funcs":{"f":"Old."}}}}`), "f")
	f.Fuzz(func(t *testing.T, section []byte, export string) {
		if text := readDocs(section).of(export); len(text) > maxComment || text != strings.TrimSpace(text) {
			t.Errorf("%q", text)
		}
	})
}
