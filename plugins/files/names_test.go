package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestCompose(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "データ報告ガイド.txt", "é", "ậ", "한글 각", "ﾊﾞ", "", "か\u3099\u3099", "ἄ", "\u0300a"} {
		if got, want := compose(norm.NFD.String(text)), norm.NFC.String(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for r := rune(0x80); r < 0x10000; r++ {
		text := string(r)
		if marks := norm.NFD.PropertiesString(text); marks.CCC() == 0 && norm.NFC.String(text) == text &&
			compose(norm.NFD.String(text)) != text {
			t.Errorf("%U is %U", r, []rune(compose(norm.NFD.String(text))))
		}
	}
}

// TestStrangeNames: names that are no UTF-8 (of old archives) or hold control characters are listed, found, read, moved
// and deleted by the name that is shown; none is made.
func TestStrangeNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems refuse such names")
	}
	const sjis, newline, backslash, decomposed = "\x83\x65\x83\x58\x83\x67.txt", "a\nb.txt", `back\x41slash`, "カ\u3099.txt"
	dir := workspace(t, map[string]string{"d/" + newline: "needle", backslash: "3", decomposed: "needle カ\u3099イト\u3099"})
	must(t, os.WriteFile(filepath.Join(dir, sjis), []byte("needle"), 0o644))
	listed := map[string]string{`\x83e\x83X\x83g.txt`: sjis, `d/a\x0ab.txt`: "d/" + newline, `back\x5cx41slash`: backslash,
		decomposed: decomposed}
	var paths []string
	for _, e := range result[listResult](t, "file_list", args{"depth": 2}).Entries {
		if paths = append(paths, e.Path); e.Type == "file" && listed[e.Path] == "" {
			t.Errorf("%q is listed", e.Path)
		}
	}
	if len(paths) != 5 {
		t.Errorf("listed: %q", paths)
	}
	for shown := range listed {
		result[readResult](t, "file_read", args{"path": shown})
		if got := result[statResult](t, "file_stat", args{"path": "/workspace/" + shown}); !got.Exists || got.Path != shown {
			t.Errorf("file_stat of %q: %+v", shown, got)
		}
	}
	var found []string
	for _, m := range result[searchResult](t, "file_search", args{"text": "needle", "name": "*.txt"}).Matches {
		found = append(found, m.Path)
	}
	if !slices.Equal(found, []string{`d/a\x0ab.txt`, `\x83e\x83X\x83g.txt`, decomposed}) {
		t.Errorf("found %q", found)
	}
	for _, in := range []args{{"name": "*ガ*"}, {"text": "ガイド"}} {
		if got := result[searchResult](t, "file_search", in); got.Count != 1 {
			t.Errorf("file_search(%v): %+v", in, got)
		}
	}
	refused(t, "file_write", args{"path": `new\x0a`, "content": ""}, "a new name")
	refused(t, "file_move", args{"from": decomposed, "to": `new\xff`}, "a new name")
	for _, path := range []string{`\x2e\x2e/x`, `a\x00b`, `a\x2fb`, `a\X83`, `a\x8`, `\x8A`} {
		if !callIn(t, "en", "file_read", args{"path": path}).IsError {
			t.Errorf("%q is accepted", path)
		}
	}
	result[moveResult](t, "file_move", args{"from": `\x83e\x83X\x83g.txt`, "to": "good.txt"})
	result[writeResult](t, "file_write", args{"path": `back\x5cx41slash`, "content": "x", "overwrite": true})
	result[removeResult](t, "delete_file", args{"path": `back\x5cx41slash`})
	result[removeResult](t, "delete_file", args{"path": `d/a\x0ab.txt`})
}

// FuzzName: every name is shown as one line of text, and what is shown names it.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"a", "\x83\x65", "a\nb", `a\x41`, `\x83`, "\\\x00", "\ufffd\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsAny(name, "/\x00") {
			return
		}
		shown := showName(name)
		if nameShown(shown) != name || !utf8.ValidString(shown) || strings.ContainsAny(shown, "\n/") {
			t.Errorf("%q is shown as %q", name, shown)
		}
		if given := nameShown(name); strings.Count(given, "/") > strings.Count(name, "/") || strings.Contains(given, "\x00") {
			t.Errorf("%q names %q", name, given)
		}
	})
}
