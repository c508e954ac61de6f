package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	jis "golang.org/x/text/encoding/japanese"
)

func TestWrite(t *testing.T) {
	dir := workspace(t, map[string]string{"old": "old", "d/x": ""})
	must(t, os.Symlink("old", filepath.Join(dir, "link")))

	if got := result[writeResult](t, "file_write", args{"path": "new", "content": "いろは"}); !reflect.DeepEqual(got, writeResult{true, "new", 9, true, "utf-8", nil}) {
		t.Errorf("new: %+v", got)
	}
	refused(t, "file_write", args{"path": "old", "content": "x"}, "exists already", "overwrite")
	if got := result[writeResult](t, "file_write", args{"path": "old", "content": "", "overwrite": true}); !reflect.DeepEqual(got, writeResult{true, "old", 0, false, "utf-8", nil}) {
		t.Errorf("old: %+v", got)
	}
	refused(t, "file_write", args{"path": "d", "content": "x", "overwrite": true}, "is a directory")
	refused(t, "file_write", args{"path": ".", "content": "x", "overwrite": true}, "is a directory")
	refused(t, "file_write", args{"path": "link", "content": "x", "overwrite": true}, "symbolic link")
	refused(t, "file_write", args{"path": "a/b/c", "content": "x"}, "directory a/b", "createDirectories")
	refused(t, "file_write", args{"path": "old/c", "content": "x"}, "not a directory")
	refused(t, "file_write", args{"path": "../c", "content": "x"}, "leads out")
	result[writeResult](t, "file_write", args{"path": "a/b/c", "content": "c", "createDirectories": true})
	for path, want := range map[string]string{"new": "いろは", "old": "", "a/b/c": "c"} {
		if content, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(content) != want {
			t.Errorf("%s holds %q, %v", path, content, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if ja := callIn(t, "ja", "file_write", args{"path": "ja", "content": "x"}).Content[0].Text; ja != "ja に 1 バイトを書き込みました。" {
		t.Errorf("in Japanese: %q", ja)
	}
}

func TestWriteEncodings(t *testing.T) {
	dir := workspace(t, nil)
	for name, want := range map[string]string{
		"shift_jis": encoded(t, jis.ShiftJIS, "日本語ｱｲｳ①\r\n"),
		"euc-jp":    encoded(t, jis.EUCJP, "日本語ｱｲｳ①\r\n"),
		"utf-8":     "日本語ｱｲｳ①\r\n",
	} {
		result[writeResult](t, "file_write", args{"path": name, "content": "日本語ｱｲｳ①\r\n", "encoding": name})
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(content) != want {
			t.Errorf("%s holds %x, %v", name, content, err)
		}
	}
	result[writeResult](t, "file_write", args{"path": "wave", "content": "1〜2−3", "encoding": "shift_jis"})
	if got := result[readResult](t, "file_read", args{"path": "wave", "encoding": "shift_jis"}); got.Content != "1～2－3" {
		t.Errorf("wave dash and minus: %q", got.Content)
	}
	refused(t, "file_write", args{"path": "x", "content": "𠮷野家", "encoding": "shift_jis"}, "'𠮷'", "utf-8")
}

func TestWriteRefusesProgramsByContent(t *testing.T) {
	dir := workspace(t, nil)
	for name, content := range map[string]string{
		"script":   "#!/bin/sh\necho",
		"elf":      "\x7fELF\x02\x01",
		"windows":  "MZ\x00\x01",
		"wasm":     "\x00asm\x01\x00\x00\x00",
		"shortcut": "L\x00\x00\x00\x01\x14\x02\x00",
	} {
		refused(t, "file_write", args{"path": name + ".txt", "content": content}, "executables are never written")
	}
	// Bytes that no JSON string holds come in through another encoding, if at all.
	for _, content := range []string{"\xfe\xed\xfa\xce", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if _, ok := program([]byte(content)); !ok {
			t.Errorf("%x is not told to be a program", content)
		}
	}
	for name, content := range map[string]string{"a.md": "# title", "b.txt": "MZ-80K", "c.txt": "see #!/bin/sh", "d.py": "print(1)"} {
		result[writeResult](t, "file_write", args{"path": name, "content": content})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestWriteRefusesProgramsByName(t *testing.T) {
	workspace(t, nil)
	for _, name := range []string{
		"a.exe", "a.EXE", "a.sh", "a.bat", "a.cmd", "a.ps1", "a.com", "a.msi", "a.scr", "a.txt.exe", "d/a.sh", "a.exe.",
		"a.sh ", "a.exe. .",
		"a.exe:stream", "a.vbs", "a.hta", "a.lnk", "a.desktop", ".sh",
	} {
		refused(t, "file_write", args{"path": name, "content": "text"}, "executables")
	}
	for _, name := range []string{"a.exe.txt", "exe", "sh", "a.shx", "a.js", "a.go", "Makefile", "a.command.md"} {
		if ending := programName(name); ending != "" {
			t.Errorf("%s is taken for a program (%s)", name, ending)
		}
	}
}

// TestTemporaryFilesAreNotListed: what an interrupted write has left is in no list, and found by no search.
func TestTemporaryFilesAreNotListed(t *testing.T) {
	workspace(t, map[string]string{"hako-write-123.tmp": "half", "notes.tmp": "whole", "d/hako-write-4.tmp": "half",
		"hako-write-notes.tmp": "whole"})
	for _, tool := range []string{"file_list", "file_search"} {
		arguments := args{"path": "."}
		if tool == "file_list" {
			arguments["depth"] = 2
		} else {
			arguments["name"] = "*.tmp"
		}
		got := callIn(t, "en", tool, arguments).Content[0].Text
		if strings.Contains(got, "hako-write-1") || strings.Contains(got, "hako-write-4") ||
			!strings.Contains(got, "notes.tmp") || !strings.Contains(got, "hako-write-notes.tmp") {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

// TestMoveNewDoesNotReplace: a file that comes up after the first look is not replaced.
func TestMoveNewDoesNotReplace(t *testing.T) {
	dir := workspace(t, map[string]string{"f": "theirs"})
	err := replace(filepath.Join(dir, "f"), []byte("ours"), false)
	if !os.IsExist(err) {
		t.Errorf("error %v", err)
	}
	if content, _ := os.ReadFile(filepath.Join(dir, "f")); string(content) != "theirs" {
		t.Errorf("f holds %q", content)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestExplainNamesNoHostPath(t *testing.T) {
	workspace(t, nil)
	_, err := os.ReadFile(filepath.Join(workspaceDir, "none"))
	if text := explain("none", err).Error(); strings.Contains(text, workspaceDir) {
		t.Errorf("%q", text)
	}
	if text := explain("f", &os.PathError{Op: "open", Path: workspaceDir,
		Err: os.ErrClosed}).Error(); strings.Contains(text, workspaceDir) {
		t.Errorf("%q", text)
	}
}
