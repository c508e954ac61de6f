package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jis "golang.org/x/text/encoding/japanese"
)

const name932 = "髙橋 花子,㈱営業①部"

// TestOverwriteKeeps: what replaces a file takes over its encoding, mark and line ends, and the bytes that nobody saw.
func TestOverwriteKeeps(t *testing.T) {
	dir := workspace(t, nil)
	// Of the two codes of 髙, Windows writes the other one.
	sjis := func(text string) string {
		return strings.ReplaceAll(encoded(t, jis.ShiftJIS, text), "\xee\xe0", "\xfb\xfc")
	}
	for name, c := range map[string]struct {
		old, content, encoding, want string
		note                         string
	}{
		"ascii":        {"a\nb\n", "a\r\nb\n", "", "a\r\nb\n", ""},
		"utf-8":        {"日本\n", "日\n", "", "日\n", ""},
		"sjis":         {sjis(name932), name932 + "\n追加", "", sjis(name932 + "\n追加"), "shift_jis, as before"},
		"euc":          {"\xa4\xa2\n", "いろ\n", "", "\xa4\xa4\xa4\xed\n", "euc-jp, as before"},
		"bom":          {"\ufeff日\r\n", "本\r\n", "", "\ufeff本\r\n", "byte order mark, as before"},
		"own bom":      {"\ufeff日", "\ufeff本", "utf-8", "\ufeff本", "byte order mark, as before"},
		"utf-16":       {"\xff\xfea\x00", "日", "", "\xff\xfe\xe5\x65", "utf-16le, as before"},
		"no mark":      {"a\x00b\x00", "𠮷", "utf-16le", "\x42\xd8\xb7\xdf", "utf-16le, as before"},
		"crlf":         {"a\r\nb\r\n", "a\nc\n", "", "a\r\nc\r\n", "CRLF, as before"},
		"mixed ends":   {"a\r\nb\n", "a\nc\n", "", "a\nc\n", ""},
		"converted":    {sjis("日本\r\n"), "日本\n", "utf-8", "日本\r\n", "was shift_jis and now is utf-8"},
		"to utf-16":    {"abc", "a", "utf-16be", "\xfe\xff\x00a", "now is utf-16be"},
		"bad byte":     {"受付\n\xff end\n", "受付2\n\ufffd end\n", "", "受付2\n\xff end\n", "1 bytes that are not valid utf-8"},
		"bad edited":   {"a\n1\xff2\xfe3\nb", "x\n9\ufffd8\ufffd7\n", "", "x\n9\xff8\xfe7\n", "2 bytes"},
		"bad moved":    {"a\xff\nb\xfe\n終了終了\n", "b\ufffd\na\ufffd\n終了終了\n", "", "b\xfe\na\xff\n終了終了\n", "2 bytes"},
		"bad same":     {"\xff\n\xfe\n終了終了\n", "\ufffd\n\ufffd\n終了\n", "", "\xff\n\xfe\n終了\n", "2 bytes"},
		"cut":          {"終了終了\n終\xe7", "終了\n終\ufffd", "", "終了\n終\xe7", "1 bytes"},
		"real U+FFFD":  {"a\ufffd\xff", "b\ufffd\ufffd", "", "b\ufffd\xff", "1 bytes"},
		"only U+FFFD":  {"a\ufffd", "b", "", "b", ""},
		"own U+FFFD":   {"a\xffa\n", "a\ufffda\nnew \ufffd", "", "a\xffa\nnew \ufffd", "1 bytes"},
		"named latin1": {"caf\xe9", "caf\u00e9 ol\u00e9", "iso-8859-1", "caf\xe9 ol\xe9", "iso-8859-1, as before"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "f")
			must(t, os.WriteFile(file, []byte(c.old), 0o644))
			in := args{"path": "f", "content": c.content, "overwrite": true}
			if c.encoding != "" {
				in["encoding"] = c.encoding
			}
			got := result[writeResult](t, "file_write", in)
			now, err := os.ReadFile(file)
			must(t, err)
			if string(now) != c.want || got.Bytes != len(now) {
				t.Errorf("holds %q, want %q (%d bytes)", now, c.want, got.Bytes)
			}
			if note := strings.Join(got.Notes, " "); (note == "") != (c.note == "") || !strings.Contains(note, c.note) {
				t.Errorf("notes %q, want %q", note, c.note)
			}
		})
	}
}

func TestOverwriteRefusesLoss(t *testing.T) {
	dir := workspace(t, nil)
	for name, c := range map[string]struct{ old, content, encoding, words string }{
		"dropped":       {"受付\na\xff\n", "受付\na\n", "", "(line 2)"},
		"one of two":    {"受付\na\xff\nb\xfe\n", "受付\na\ufffd\n", "", "(line 3)"},
		"other count":   {"受付\na\xff\n", "受付\nb\ufffd\ufffd\n", "", "(line 2)"},
		"converted":     {"受付\na\xff\n", "受付\na\ufffd\n", "shift_jis", "valid utf-8"},
		"new text":      {"受付受付\n\xff\n", "all new", "", "delete the file first"},
		"image":         {png, "text", "", "a PNG image"},
		"binary":        {"a\x00b", "text", "", "binary data"},
		"iso-2022-jp":   {encoded(t, jis.ISO2022JP, "日本"), "text", "", "ISO-2022-JP"},
		"not in it":     {"\x93\xfa\x96{", "𠮷", "", "'𠮷'"},
		"much damage":   {strings.Repeat("終了\xff\n", maxDamage+1), "x", "", "(line 1)"},
		"one long line": {strings.Repeat("終", maxRead) + "\xff", "x", "", "(line 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "f")
			must(t, os.WriteFile(file, []byte(c.old), 0o644))
			in := args{"path": "f", "content": c.content, "overwrite": true}
			if c.encoding != "" {
				in["encoding"] = c.encoding
			}
			refused(t, "file_write", in, c.words)
			if now, err := os.ReadFile(file); err != nil || string(now) != c.old {
				t.Errorf("it now holds %.60q", now)
			}
		})
	}
}

// FuzzOverwrite: a file that is written back as it was read is unchanged, byte for byte.
func FuzzOverwrite(f *testing.F) {
	for _, seed := range []string{"plain\n", "いろは\xff\r\n", "\x93\xfa\x96{\r\n", "\xa4\xa2\n", "\xff\xfea\x00\xd8\x00", "\ufeffx\ufffd\xc0",
		"\xe3\x81", "a\xff\r\nb\xff\r\n", "caf\xe9 \ufffd"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := &regular{path: "f", size: int64(len(content)), head: content[:min(len(content), sniffed)],
			more: content[:min(len(content), sampled)]}
		if len(content) > 1<<10 || file.isText(nil) != nil || content == nil {
			return
		}
		body := content[bomSize(content):]
		d, err := file.decode("", body, bomSize(content))
		if err != nil || bytes.HasPrefix(d.text, []byte("\ufeff")) {
			return
		}
		p := &previous{path: "f", encoding: d.encoding, marked: bom(content) != nil}
		number := 1
		for left := body; len(left) > 0; {
			left = left[p.scan(left, true, &number):]
		}
		data, _, err := p.encode(t.Context(), string(d.text), d.encoding)
		if err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		if d.encoding == shiftJIS || d.encoding == eucJP { // some characters have two codes
			data = d.encoding.at(data, 0, true).text
			content = d.text
		}
		if !bytes.Equal(data, content) {
			t.Errorf("%s %q is %q", d.encoding.name, content, data)
		}
	})
}
