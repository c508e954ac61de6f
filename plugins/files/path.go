package main

import (
	"path"
	"path/filepath"
	"strings"
)

// mount is the guest path that callers may write before a path; it is also what they are told.
const mount = "/workspace"

// resolve checks a path from a caller. It returns it relative to the mount in its shortest form ("." for the mount itself), and
// as package os takes it.
func resolve(given string) (rel, full string, err error) {
	inside, ok := inMount(given)
	switch {
	case given == "":
		return "", "", refuse(`the path is empty: give one relative to %[1]s, such as "notes/today.md"`,
			`パスが空です。%[1]s からの相対パスを指定してください(例: "notes/today.md")`, mount)
	case strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", "", refuse("%q: a path must not hold control characters: leave them out",
			"%q: パスに制御文字は使えません。取り除いてください", given)
	case !ok:
		return "", "", refuse(`%[1]q is a path of the host, which does not exist here. The one mount is %[2]s: give a path relative to it, such as "notes/today.md"`,
			`%[1]q はホストのパスで、ここには存在しません。使えるのは %[2]s だけです。そこからの相対パスを指定してください(例: "notes/today.md")`, given, mount)
	case strings.Contains(given, `\`):
		return "", "", refuse(`%q: use "/" between directories, not "\"`,
			`%q: ディレクトリの区切りには "\" ではなく "/" を使ってください`, given)
	}
	rel = path.Clean(inside)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", "", refuse(`%[1]q leads out of %[2]s, and nothing outside of it exists here: leave out the ".." that is too many`,
			`%[1]q は %[2]s の外を指しています。外側には何もありません。余分な ".." を取り除いてください`, given, mount)
	}
	return rel, filepath.Join(root, filepath.FromSlash(rel)), nil
}

// inMount cuts the mount off a path. It reports false for absolute paths elsewhere, in any system's notation.
func inMount(given string) (string, bool) {
	if given == mount || strings.HasPrefix(given, mount+"/") {
		return "." + given[len(mount):], true
	}
	drive := len(given) >= 2 && given[1] == ':' && (given[0]|0x20) >= 'a' && (given[0]|0x20) <= 'z'
	absolute := drive || strings.HasPrefix(given, "/") || strings.HasPrefix(given, `\`) ||
		given == "~" || strings.HasPrefix(given, "~/") || strings.HasPrefix(given, "file:")
	return given, !absolute
}

// programs are the endings of names that some system runs when they are opened.
var programs = strings.Fields(`
	.action .apk .app .appimage .bash .bat .chm .cmd .com .command .cpl .csh .deb .desktop .dll .dmg .dylib .elf .exe .fish
	.gadget .hta .inf .ipa .jar .jse .ksh .lnk .msc .msi .msix .msp .mst .ocx .pif .pkg .ps1 .psc1 .psd1 .psm1 .reg .rpm .run
	.scf .scpt .scr .sct .sh .so .sys .url .vbe .vbs .wasm .workflow .ws .wsc .wsf .wsh .xbe .zsh`)

// programName returns the ending that makes a name that of a program, or "". Systems drop dots, spaces and streams ("a.exe:x") at
// the end of a name, so they do not hide it.
func programName(name string) string {
	name, _, _ = strings.Cut(path.Base(name), ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	for _, ending := range programs {
		if strings.HasSuffix(name, ending) {
			return ending
		}
	}
	return ""
}
