package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	charset "golang.org/x/text/encoding"
	jis "golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/hako-run/hako/pdk/abi"
)

const (
	iroha = "色は匂へど散りぬるを\r\n我が世誰ぞ常ならむ\r\nﾊﾝｶｸ、①㈱髙～−\r\n"
	png   = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
)

func encoded(t *testing.T, e charset.Encoding, text string) string {
	t.Helper()
	data, err := e.NewEncoder().String(text)
	must(t, err)
	return data
}

func TestReadEncodings(t *testing.T) {
	workspace(t, map[string]string{
		"ascii":     "plain",
		"empty":     "",
		"utf8":      iroha,
		"bom":       "\ufeff" + iroha,
		"sjis":      encoded(t, jis.ShiftJIS, strings.ReplaceAll(iroha, "−", "")),
		"euc":       encoded(t, jis.EUCJP, "色は匂へど ｱｲｳ"),
		"utf16":     encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), iroha+"𠮷"),
		"utf16be":   encoded(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), iroha),
		"latin1":    "caf\xe9 ol\xe9 \xff",
		"late sjis": strings.Repeat("x", 5000) + encoded(t, jis.ShiftJIS, "日本"),
		"terminal":  "\x1b[31mred\x1b[0m\n",
		"mz":        "MZ-80K was a computer",
	})
	for name, want := range map[string][2]string{
		"ascii":     {"plain", "utf-8"},
		"empty":     {"", "utf-8"},
		"utf8":      {iroha, "utf-8"},
		"bom":       {iroha, "utf-8"},
		"sjis":      {strings.ReplaceAll(iroha, "−", ""), "shift_jis"},
		"euc":       {"色は匂へど ｱｲｳ", "euc-jp"},
		"utf16":     {iroha + "𠮷", "utf-16le"},
		"utf16be":   {iroha, "utf-16be"},
		"late sjis": {strings.Repeat("x", 5000) + "日本", "shift_jis"},
		"terminal":  {"\x1b[31mred\x1b[0m\n", "utf-8"},
		"mz":        {"MZ-80K was a computer", "utf-8"},
	} {
		got := result[readResult](t, "file_read", args{"path": name})
		if got.Content != want[0] || got.Encoding != want[1] || got.NextOffset != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := result[readResult](t, "file_read", args{"path": "latin1", "encoding": "iso-8859-1"}); got.Content != "café olé ÿ" {
		t.Errorf("latin1: %+v", got)
	}
	refused(t, "file_read", args{"path": "sjis", "encoding": "utf-8"}, "not valid utf-8", "byte 0")
	refused(t, "file_read", args{"path": "utf16", "offset": 5}, "utf-16le", "byte 5")
}

// TestReadDamaged: bytes that are no text cost themselves, not the file.
func TestReadDamaged(t *testing.T) {
	utf8 := strings.Repeat("受付しました\n", 400)
	line := encoded(t, jis.ShiftJIS, "外部: 接続エラー\n")
	workspace(t, map[string]string{
		"mixed": utf8 + line + "終了\n", "cut": utf8 + "切れた行、\xe3\n終了\n", "end": "終了終了\xe7\xb5",
		"one line": "受付しました受付\xff", "latin1": "caf\xe9 ol\xe9 \xff",
		"utf16": "\xff\xfea\x00\x00\xdc", "plain16": encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), iroha),
		"moji": strings.Repeat("日本語utf8\n", 500) + encoded(t, jis.ShiftJIS, "日本語sjis\n"),
		"gbk":  "\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7\xa3\xac\xd6\xd0\xce\xc4\n", "kanji": encoded(t, jis.EUCJP, "日本"),
		"bank": encoded(t, jis.ShiftJIS, "ｶ)ﾔﾏﾀﾞ ｼﾖｳｼﾞ\r\n"), "none": "\xff\xff\xff a",
	})
	for name, want := range map[string]struct {
		holds    string
		encoding string
		replaced int
	}{
		"mixed": {utf8, "utf-8", 9}, "cut": {utf8 + "切れた行、\ufffd\n終了\n", "utf-8", 1}, "end": {"終了終了\ufffd\ufffd", "utf-8", 2},
		"one line": {"受付しました受付\ufffd", "utf-8", 1}, "latin1": {"caf\ufffd ol\ufffd \ufffd", "utf-8", 3},
		"utf16": {"a\ufffd", "utf-16le", 1}, "moji": {strings.Repeat("日本語utf8\n", 500), "utf-8", 5},
		"bank": {"ｶ)ﾔﾏﾀﾞ ｼﾖｳｼﾞ\r\n", "shift_jis", 0},
	} {
		for _, in := range []args{{"path": name}, {"path": name, "encoding": want.encoding}} {
			got := result[readResult](t, "file_read", in)
			if !strings.HasPrefix(got.Content, want.holds) || got.Encoding != want.encoding || got.Replaced != want.replaced {
				t.Errorf("%v: %.30q, %s, %d replaced", in, got.Content, got.Encoding, got.Replaced)
			}
		}
	}
	if note := callIn(t, "en", "file_read", args{"path": "cut"}).Content[1].Text; !strings.Contains(note, "1 bytes are not valid utf-8") {
		t.Errorf("note %q", note)
	}
	for name, words := range map[string]string{"gbk": "nor surely Shift_JIS", "kanji": "nor surely Shift_JIS", "none": `name another "encoding"`,
		"plain16": "binary data"} {
		refused(t, "file_read", args{"path": name}, words)
	}
	if got := result[readResult](t, "file_read", args{"path": "plain16", "encoding": "utf-16le"}); got.Content != iroha {
		t.Errorf("UTF-16 without a mark: %q", got.Content)
	}
	if got := result[readResult](t, "file_read", args{"path": "kanji", "encoding": "euc-jp"}); got.Content != "日本" {
		t.Errorf("EUC-JP by name: %q", got.Content)
	}
}

func TestReadRefusesWhatIsNotText(t *testing.T) {
	files := map[string]string{
		"elf.txt":   "\x7fELF\x02\x01\x01\x00",
		"exe.md":    "MZ\x90\x00\x03\x00",
		"wasm.json": "\x00asm\x01\x00\x00\x00",
		"zip.txt":   "PK\x03\x04\x14\x00",
		"pdf.txt":   "%PDF-1.7\n%\xe2\xe3",
		"old.txt":   "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
		"tar.txt":   "name" + strings.Repeat("\x00", 253) + "ustar",
		"nul.txt":   "text\x00text",
		"noise.txt": "\x01\x02\x03\x04\x05\x06\x0e\x0f",
		"jis.txt":   encoded(t, jis.ISO2022JP, "日本"),
		"photo.txt": png,
	}
	words := map[string]string{
		"elf.txt": "ELF", "exe.md": "Windows program", "wasm.json": "WebAssembly", "zip.txt": "ZIP", "pdf.txt": "PDF",
		"old.txt": "Office",
		"tar.txt": "tar", "nul.txt": "binary data", "noise.txt": "binary data", "jis.txt": "ISO-2022-JP",
		"photo.txt": `"as": "image"`,
	}
	workspace(t, files)
	for name := range files {
		refused(t, "file_read", args{"path": name}, name, words[name])
	}
}

func TestReadImage(t *testing.T) {
	dir := workspace(t, map[string]string{"a.txt": png, "b.gif": "GIF89a\x01\x00", "c.jpg": "\xff\xd8\xff\xe0",
		"d.webp": "RIFF\x00\x00\x00\x00WEBP", "e.png": "text"})
	for name, mime := range map[string]string{"a.txt": "image/png", "b.gif": "image/gif", "c.jpg": "image/jpeg", "d.webp": "image/webp"} {
		response := call(t, "file_read", args{"path": name, "as": "image"})
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if block := response.Content[0]; block.Type != abi.Image || block.MIMEType != mime ||
			!bytes.Equal(block.Data, content) {
			t.Errorf("%s: %+v", name, block)
		}
	}
	refused(t, "file_read", args{"path": "e.png", "as": "image"}, "not an image")
	must(t, os.Truncate(filepath.Join(dir, "a.txt"), maxImage+1))
	refused(t, "file_read", args{"path": "a.txt", "as": "image"}, "more than the 3145728")
}

func TestReadByBytes(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<16) + "いろは"
	workspace(t, map[string]string{
		"f": "0123456789abcdefいろはにほへと", "large": large,
		"sjis": encoded(t, jis.ShiftJIS, strings.Repeat("いろはにほへと", 10)),
	})
	for _, c := range []struct {
		path           string
		offset, length int64
		want           string
		start, next    int64
	}{
		{"f", 0, 16, "0123456789abcdef", 0, 16},
		{"f", 0, 17, "0123456789abcdef", 0, 16}, // the cut character is left for next time
		{"f", 0, 19, "0123456789abcdefい", 0, 19},
		{"f", 17, 16, "ろはにほ", 17, 31}, // within a character: the next one
		{"f", 16, 1000, "いろはにほへと", 16, 0},
		{"f", 37, 0, "", 37, 0},
		{"large", 0, 0, large[:maxRead], 0, maxRead},
		{"large", maxRead, 0, "いろは", maxRead, 0},
		{"sjis", 0, 17, "いろはにほへとい", 0, 16},
		{"sjis", 16, 16, "ろはにほへといろ", 16, 32},
	} {
		in := args{"path": c.path, "offset": c.offset}
		if c.length > 0 {
			in["length"] = c.length
		}
		response := call(t, "file_read", in)
		got := result[readResult](t, "file_read", in)
		if got.Content != c.want || got.Offset != c.start || got.NextOffset != c.next {
			t.Errorf("%v: %.80q from %d, next %d", in, got.Content, got.Offset, got.NextOffset)
		}
		if string(response.Content[0].Data) != c.want {
			t.Errorf("%v: the text block differs from the structured content", in)
		}
		if (len(response.Content) == 2) != (c.next > 0) {
			t.Errorf("%v: %d blocks", in, len(response.Content))
		}
	}
	refused(t, "file_read", args{"path": "f", "offset": 38}, "37 bytes", "offset 38")
	refused(t, "file_read", args{"path": "f", "offset": 1, "line": 1}, "not both")
	response := call(t, "file_read", args{"path": "large"})
	if note := response.Content[1].Text; note != `[bytes 0 to 1048576 of 1048585; go on with "offset": 1048576]` {
		t.Errorf("note %q", note)
	}
}

func TestReadByLines(t *testing.T) {
	long := strings.Repeat("x", maxRead-10) + "\nshort\n" + strings.Repeat("y", maxRead+10) + "\nlast"
	workspace(t, map[string]string{"f": "one\ntwo\nthree", "ended": "one\ntwo\n", "long": long, "empty": "",
		"utf16": "\xff\xfea\x00"})
	for _, c := range []struct {
		path        string
		line, lines int
		want        string
		nextLine    int
	}{
		{"f", 1, 1, "one\n", 2},
		{"f", 2, 1, "two\n", 3},
		{"f", 2, 0, "two\nthree", 0},
		{"f", 3, 5, "three", 0},
		{"f", 0, 2, "one\ntwo\n", 3},
		{"ended", 2, 1, "two\n", 0},
		{"empty", 1, 1, "", 0},
		{"long", 1, 0, long[:maxRead-3], 3},
		{"long", 1, 1, long[:maxRead-9], 2},
		{"long", 3, 0, strings.Repeat("y", maxRead), 0}, // too long for one call: goes on by bytes
		{"long", 4, 1, "last", 0},
	} {
		in := args{"path": c.path}
		if c.line > 0 {
			in["line"] = c.line
		}
		if c.lines > 0 {
			in["lines"] = c.lines
		}
		got := result[readResult](t, "file_read", in)
		if got.Content != c.want || got.NextLine != c.nextLine {
			t.Errorf("%v: %.80q, %d bytes, next line %d", in, got.Content, len(got.Content), got.NextLine)
		}
	}
	refused(t, "file_read", args{"path": "f", "line": 4}, "3 lines", "no line 4")
	refused(t, "file_read", args{"path": "ended", "line": 3}, "2 lines", "no line 3")
	refused(t, "file_read", args{"path": "empty", "line": 2}, "0 lines")
	refused(t, "file_read", args{"path": "utf16", "line": 1}, "utf-16le", `"offset"`)
	note := callIn(t, "ja", "file_read", args{"path": "f", "line": 1, "lines": 1}).Content[1].Text
	if note != `[13 バイト中 0 から 4 バイト目の手前まで。続きは "line": 2 で読めます]` {
		t.Errorf("note %q", note)
	}
}

// TestJapaneseTables compares every character with the tables of golang.org/x/text.
func TestJapaneseTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own   *encoding
		other charset.Encoding
	}{"shift_jis": {shiftJIS, jis.ShiftJIS}, "euc-jp": {eucJP, jis.EUCJP}} {
		for lead := range 256 {
			for trail := range 256 {
				src := []byte{byte(lead), byte(trail)}
				theirs, err := c.other.NewDecoder().Bytes(src)
				must(t, err)
				valid := !bytes.Contains(theirs, []byte("\ufffd")) && !private(string(theirs))
				ours, n, bad := c.own.decode(src)
				if n == 1 || lead == 0x8f && name == "euc-jp" || bytes.Contains(theirs, []byte("\u0080")) {
					continue // ends within a character, is of JIS X 0212, or a control character that Shift_JIS has in theory
				}
				if (bad == 0) != valid || valid && string(ours) != string(theirs) {
					t.Fatalf("%s %x: %q %v, want %q", name, src, ours, bad, theirs)
				}
				if !valid {
					continue
				}
				again, missing := c.own.encode(string(ours))
				if back, _, bad := c.own.decode(again); missing >= 0 || bad > 0 || string(back) != string(ours) {
					t.Fatalf("%s %x: encoded again %x %q", name, src, again, back)
				}
			}
		}
	}
}

// private reports whether a text holds a character for private use, which only its writer knows.
func private(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0xe000 && r <= 0xf8ff })
}

// FuzzText checks that reading any bytes as text gives text, or an error, and goes on behind what it gave.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"plain", "いろは", "\x93\xfa\x96{", "\xc6\xfc\xcb\xdc", "\xff\xfea\x00", "\xef\xbb\xbf", "\xe3\x81", "\x8f\xa2", "\x00", png} {
		f.Add([]byte(seed), uint16(0), "")
		f.Add([]byte(seed), uint16(1), "shift_jis")
	}
	f.Fuzz(func(t *testing.T, content []byte, offset uint16, name string) {
		file := &regular{path: "f", size: int64(len(content)), head: content[:min(len(content), sniffed)]}
		if file.isText(encodingNamed(name)) != nil {
			return
		}
		raw := content[min(len(content), int(offset)):]
		d, err := file.decode(name, raw, int64(offset))
		if err != nil {
			return
		}
		if !utf8.Valid(d.text) {
			t.Errorf("%q is not UTF-8", d.text)
		}
		if d.size < 0 || d.size > len(raw) || len(raw) > 3 && d.size == 0 {
			t.Errorf("%d of %d bytes", d.size, len(raw))
		}
		if out, missing := shiftJIS.encode(string(d.text)); missing < 0 {
			if _, _, bad := shiftJIS.decode(out); bad > 0 {
				t.Errorf("%q: encoded it is %x, which is malformed", d.text, out)
			}
		}
	})
}
