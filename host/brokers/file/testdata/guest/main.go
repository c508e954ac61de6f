// Command guest uses package os in /workspace and in the read-only /reference, and prints each operation with a wrong
// result.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	files()
	directories()
	links()
	denied()
	limits()
	fmt.Println("done")
}

func check(what string, err error) {
	if err != nil {
		fmt.Println(what+":", err)
	}
}

func refused(what string, err, want error) {
	if !errors.Is(err, want) {
		fmt.Printf("%s: %v, want %v\n", what, err, want)
	}
}

func files() {
	check("WriteFile", os.WriteFile("/workspace/f", []byte("hello"), 0o777))
	content, err := os.ReadFile("f") // the first mount is the working directory
	check("ReadFile", err)
	if string(content) != "hello" {
		fmt.Printf("ReadFile: %q\n", content)
	}
	f, err := os.OpenFile("f", os.O_RDWR|os.O_APPEND, 0)
	check("OpenFile", err)
	_, err = f.WriteString(" world")
	check("append", err)
	_, err = f.Seek(1, io.SeekStart)
	check("Seek", err)
	rest, err := io.ReadAll(f)
	check("ReadAll", err)
	if string(rest) != "ello world" {
		fmt.Printf("ReadAll: %q\n", rest)
	}
	check("Truncate", f.Truncate(3))
	check("Sync", f.Sync())
	info, err := f.Stat()
	check("Stat", err)
	if info.Size() != 3 || info.IsDir() {
		fmt.Println("Stat:", info.Size(), info.Mode())
	}
	check("Close", f.Close())
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	check("Chtimes", os.Chtimes("f", when, when))
	again, err := os.Stat("f")
	check("Stat", err)
	if !again.ModTime().Equal(when) || !os.SameFile(info, again) {
		fmt.Println("after Chtimes:", again.ModTime(), os.SameFile(info, again))
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	check("WriteFile of 1 MiB", os.WriteFile("big", big, 0o600))
	content, err = os.ReadFile("big")
	check("ReadFile of 1 MiB", err)
	if !bytes.Equal(content, big) {
		fmt.Println("ReadFile of 1 MiB: other content")
	}
	check("Remove", os.Remove("big"))
	_, err = os.ReadFile("big")
	refused("ReadFile of nothing", err, fs.ErrNotExist)
}

func directories() {
	check("MkdirAll", os.MkdirAll("/workspace/a/b/c", 0o755))
	for i := range 300 {
		check("WriteFile", os.WriteFile(fmt.Sprintf("/workspace/a/%03d", i), nil, 0o600))
	}
	entries, err := os.ReadDir("/workspace/a")
	check("ReadDir", err)
	if len(entries) != 301 || !entries[300].IsDir() {
		fmt.Println("ReadDir:", len(entries))
	}
	check("Rename", os.Rename("a/000", "a/b/moved"))
	var seen []string
	check("WalkDir", filepath.WalkDir("/workspace/a/b", func(path string, _ fs.DirEntry, err error) error {
		seen = append(seen, path)
		return err
	}))
	if !slices.Equal(seen, []string{"/workspace/a/b", "/workspace/a/b/c", "/workspace/a/b/moved"}) {
		fmt.Println("WalkDir:", seen)
	}
	root, err := os.OpenRoot("/workspace/a")
	check("OpenRoot", err)
	_, err = root.Stat("b/moved")
	check("Root.Stat", err)
	check("Root.Close", root.Close())
	name, err := os.MkdirTemp("/workspace", "t*")
	check("MkdirTemp", err)
	check("Remove of a directory", os.Remove(name))
	check("RemoveAll", os.RemoveAll("/workspace/a"))
	_, err = os.Stat("/workspace/a")
	refused("Stat of a removed directory", err, fs.ErrNotExist)
}

func links() {
	target, err := os.Readlink("inner")
	check("Readlink", err)
	if target != "given" {
		fmt.Println("Readlink:", target)
	}
	_, err = os.ReadFile("inner")
	check("ReadFile through a link", err)
	refused("Symlink", os.Symlink("given", "new"), fs.ErrPermission)
	refused("Link", os.Link("given", "new"), fs.ErrPermission)
	for _, path := range []string{"outer", "../secret", "/secret", "/workspace/../secret"} {
		if content, err := os.ReadFile(path); err == nil {
			fmt.Printf("ReadFile of %s: %q\n", path, content)
		}
	}
}

func denied() {
	_, err := os.ReadFile("/reference/given")
	check("ReadFile of a read-only mount", err)
	refused("WriteFile", os.WriteFile("/reference/f", nil, 0o600), syscall.EROFS)
	refused("Remove", os.Remove("/reference/given"), syscall.EROFS)
	_, err = os.ReadFile("/reference/.env")
	refused("ReadFile of a hidden file", err, fs.ErrNotExist)
	entries, err := os.ReadDir("/reference")
	check("ReadDir of a read-only mount", err)
	if len(entries) != 1 {
		fmt.Println("ReadDir of a read-only mount:", entries)
	}
}

func limits() {
	refused("WriteFile of 2 MiB", os.WriteFile("huge", make([]byte, 2<<20), 0o600), syscall.EDQUOT)
	for range 8 {
		f, err := os.Open("given")
		check("Open", err)
		defer f.Close()
	}
	_, err := os.Open("given")
	refused("Open of a ninth", err, syscall.EMFILE)
}
