package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/hako-run/hako/host/manifest"
)

func readManifest(t testing.TB) *manifest.Manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "sheets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSchemas holds the tools' answers against the manifest's output schemas, and its input schemas against what they
// are to refuse.
func TestSchemas(t *testing.T) {
	t.Parallel()
	m, b := readManifest(t), newBook(t)
	written := must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["a",1,null,true]]}`))
	if err := m.Tools[0].Output().Validate(written.StructuredContent); err != nil {
		t.Error(err)
	}
	for _, values := range []string{"formatted", "unformatted", "formula"} {
		r := must(t, b.read(t, `{"spreadsheet_id":"ID","range":"Sheet1","max_rows":1,"values":"`+values+`"}`))
		if err := m.Tools[1].Output().Validate(r.StructuredContent); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		`{"spreadsheet_id":"ID","range":"A1","rows":[[["nested"]]]}`,
		`{"spreadsheet_id":"ID","range":"A1","rows":[[{"a":1}]]}`,
		`{"spreadsheet_id":"ID","range":"A1","rows":["x"]}`, `{"spreadsheet_id":"ID","range":"A1","rows":[]}`,
		`{"spreadsheet_id":"ID","range":"","rows":[[1]]}`, `{"spreadsheet_id":"ID","rows":[[1]]}`,
		`{"spreadsheet_id":"ID","range":"A1","rows":[[1]],"mode":"replace"}`,
		`{"spreadsheet_id":"ID","range":"A1","rows":[[1]],"value_input":"RAW"}`,
	} {
		if err := m.Tools[0].Input().Validate(json.RawMessage(strings.ReplaceAll(bad, "ID", docID))); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestPermissions: what the tools send is granted, and what else the API can do is not.
func TestPermissions(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	granted := func(method, path string) bool {
		decoded, err := url.PathUnescape(path)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(m.Permissions.HTTP, func(p manifest.HTTPPermission) bool {
			return p.Credential == "google" && slices.Contains(p.Methods, method) &&
				slices.ContainsFunc(p.Paths, func(glob string) bool {
					return doublestar.MatchUnvalidated(glob,
						strings.TrimPrefix(decoded, "/"))
				})
		})
	}
	s := &spreadsheet{"/v4/spreadsheets/" + docID}
	for _, title := range []string{"Sheet1", japan, "It's", "a:append", "50%"} {
		at := area{sheet: title, from: corner{1, 1}, to: corner{2, 2}, cells: true}
		if !granted("GET", s.values(at)) || !granted("PUT", s.values(at)) || !granted("POST", s.values(at)+":append") {
			t.Errorf("the sheet %q cannot be reached: %s", title, s.values(at))
		}
	}
	if !granted("GET", s.url) {
		t.Error("the sheets' names cannot be read")
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if granted(method, s.url+":batchUpdate") || granted(method, "/v4/spreadsheets") {
			t.Errorf("%s on spreadsheets themselves is granted", method)
		}
	}
}
