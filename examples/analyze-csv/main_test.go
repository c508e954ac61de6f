package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

func TestAnalyze(t *testing.T) {
	mount = t.TempDir()
	for name, text := range map[string]string{
		"good.csv":   "\ufeffname,price,note\ntea,120,hot\n\"coffee, black\",180,\nwater,,3\n",
		"ragged.csv": "a,b\n1\n",
		"empty.csv":  "",
	} {
		if err := os.WriteFile(filepath.Join(mount, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"sum", "average", "count"}
	want := `{"rows":3,"columns":[{"name":"name","count":3},{"name":"price","count":2,"sum":300,"average":150},{"name":"note","count":2}]}`
	for _, operations := range [][]string{all, nil, {}} { // without any all are computed
		if r := pdktest.CallTool(t, "analyze_csv", query{"good.csv", operations}, pdktest.Options{}); string(r.StructuredContent) != want {
			t.Errorf("%v: got %s, want %s", operations, r.StructuredContent, want)
		}
	}
	want = `{"rows":3,"columns":[{"name":"name"},{"name":"price","sum":300},{"name":"note"}]}`
	if r := pdktest.CallTool(t, "analyze_csv", query{"good.csv", all[:1]}, pdktest.Options{}); string(r.StructuredContent) != want {
		t.Errorf("got %s, want %s", r.StructuredContent, want)
	}
	for file, want := range map[string]string{"ragged.csv": "wrong number of fields", "empty.csv": "names of the columns", "none.csv": "none.csv"} {
		if r := pdktest.CallTool(t, "analyze_csv", query{file, all}, pdktest.Options{}); !r.IsError ||
			!strings.Contains(r.Content[0].Text, want) {
			t.Errorf("%s: got %+v, want an error with %q", file, r, want)
		}
	}
}
