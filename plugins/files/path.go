package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// mount is the guest path of the workspace, which relative paths start at.
const mount = "/workspace"

// location is a file or directory in one of the roots: the workspace, or another directory that the operator allows.
type location struct {
	// path is the path in arguments and results: relative to the workspace in its shortest form ("." for the workspace
	// itself), else absolute, as "/docs/a.md".
	path string
	// full is the path for package os.
	full string
	// root is the guest path of the root.
	root string
}

// isRoot reports whether l is a root itself.
func (l location) isRoot() bool { return l.path == "." || l.path == l.root }

// refuseRoot refuses to change a root itself.
func refuseRoot(l location) error {
	return refuse("%s is an allowed directory itself, which cannot be moved, replaced or deleted: name something in it",
		"%s は許可されたディレクトリそのものなので、移動・置き換え・削除はできません。その中のものを指定してください", l.root)
}

// in returns the location of a clean relative path in a root, whose names are as showName shows them.
func in(root, rel string) location {
	if root == mount {
		return location{rel, filepath.Join(workspaceDir, filepath.FromSlash(nameShown(rel))), root}
	}
	return location{path.Join(root, rel), filepath.Join(root, filepath.FromSlash(nameShown(rel))), root}
}

// resolve checks a path from a caller and returns what it names.
func resolve(ctx context.Context, given string) (location, error) {
	switch {
	case given == "":
		return location{}, refuse(`the path is empty: give one relative to %[1]s, such as "notes/today.md"`,
			`パスが空です。%[1]s からの相対パスを指定してください(例: "notes/today.md")`, mount)
	case strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return location{}, refuse("%q: a path must not hold control characters: leave them out",
			"%q: パスに制御文字は使えません。取り除いてください", given)
	}
	root, inside, err := rootOf(ctx, given)
	if err != nil {
		return location{}, err
	}
	if strings.Contains(inside, `\`) && showName(nameShown(inside)) != inside {
		return location{}, refuse(`%q: use "/" between directories, not "\"`,
			`%q: ディレクトリの区切りには "\" ではなく "/" を使ってください`, given)
	}
	rel := path.Clean(inside)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return location{},
			refuse(
				`%[1]q leads out of %[2]s, and nothing outside of it exists here: leave out the ".." that is too many`,
				`%[1]q は %[2]s の外を指しています。外側には何もありません。余分な ".." を取り除いてください`, given, root)
	}
	return in(root, rel), nil
}

// starts returns where a list or a search begins: at a path from a caller, or without one at all roots.
func starts(ctx context.Context, given string) ([]location, error) {
	if given != "" {
		l, err := resolve(ctx, given)
		return []location{l}, err
	}
	all, err := roots(ctx)
	list := make([]location, len(all))
	for i, r := range all {
		list[i] = in(r.path, ".")
	}
	return list, err
}

// root is a directory that the operator allows.
type root struct {
	path string   // as guests see it
	host []string // paths of the host, the shortest first
}

// roots returns all roots, the workspace last.
func roots(ctx context.Context) ([]root, error) {
	paths, err := pdk.Roots(ctx)
	if err != nil {
		return nil, err
	}
	byPath := map[string]root{mount: {path: mount}}
	for host, guest := range paths {
		byPath[guest] = root{guest, append(byPath[guest].host, host)}
	}
	workspace := byPath[mount]
	delete(byPath, mount)
	list := slices.SortedFunc(maps.Values(byPath), func(a, b root) int { return strings.Compare(a.path, b.path) })
	list = append(list, workspace)
	for _, r := range list {
		slices.SortFunc(r.host, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	}
	return list, nil
}

// rootOf returns the root that a path is in, and what follows. Absolute paths are first taken for those of guests, then
// for those of the host, in the innermost root.
func rootOf(ctx context.Context, given string) (guestPath, inside string, err error) {
	if !isAbsolute(given) {
		return mount, given, nil
	}
	all, err := roots(ctx)
	if err != nil {
		return "", "", err
	}
	for _, r := range all {
		if given == r.path || strings.HasPrefix(given, r.path+"/") {
			return r.path, "." + given[len(r.path):], nil
		}
	}
	longest := -1
	for _, r := range all {
		for _, host := range r.host {
			if rest, ok := below(given, host); ok && len(host) > longest {
				guestPath, inside, longest = r.path, rest, len(host)
			}
		}
	}
	if longest >= 0 {
		return guestPath, inside, nil
	}
	if len(all) == 1 {
		return "", "",
			refuse(`%[1]q is a path of the host, which does not exist here. The one mount is %[2]s: give a path relative to it, such as "notes/today.md"`,
				`%[1]q はホストのパスで、ここには存在しません。使えるのは %[2]s だけです。そこからの相対パスを指定してください(例: "notes/today.md")`, given, mount)
	}
	return "", "", refuse("%[1]q is in none of the allowed directories. They are %[2]s: give a path in one of them",
		"%[1]q は許可されたディレクトリの外です。使えるのは %[2]s です。その中のパスを指定してください", given, names(all))
}

// elsewhere returns err, or where the path is if it is missing in the workspace and another root has it.
func elsewhere(ctx context.Context, at location, err error) error {
	if _, missing := os.Lstat(at.full); at.root != mount || !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	all, rootsErr := roots(ctx)
	if rootsErr != nil {
		return err
	}
	for _, r := range all {
		other := in(r.path, at.path)
		if _, err := os.Lstat(other.full); r.path != mount && err == nil {
			return refuse("%[1]s is not in the workspace, where relative paths start, but there is %[2]s: name it so",
				"%[1]s はワークスペース(相対パスの起点)にはありませんが、%[2]s があります。そのパスを指定してください", at.path, other.path)
		}
	}
	return err
}

// names lists roots, with the host's paths of those besides the workspace.
func names(all []root) string {
	list := make([]string, len(all))
	for i, r := range all {
		if list[i] = r.path; r.path != mount {
			list[i] += " (" + r.host[0] + ")"
		}
	}
	return strings.Join(list, ", ")
}

// below returns what follows a directory of the host in a path of the host, "." for the directory itself.
func below(given, dir string) (string, bool) {
	windows := !strings.HasPrefix(dir, "/")
	if windows {
		given, dir = strings.ReplaceAll(given, `\`, "/"), strings.ReplaceAll(dir, `\`, "/")
	}
	given, dir = path.Clean(given), path.Clean(dir)
	if len(given) < len(dir) || given[:len(dir)] != dir && !(windows && strings.EqualFold(given[:len(dir)], dir)) {
		return "", false
	}
	rest := given[len(dir):]
	return "." + rest, rest == "" || rest[0] == '/'
}

// isAbsolute reports whether a path is absolute in any system's notation.
func isAbsolute(given string) bool {
	drive := len(given) >= 2 && given[1] == ':' && (given[0]|0x20) >= 'a' && (given[0]|0x20) <= 'z'
	_, escaped := unescape(strings.TrimPrefix(given, `\x`))
	return drive || strings.HasPrefix(given, "/") || strings.HasPrefix(given, `\`) && !escaped ||
		given == "~" || strings.HasPrefix(given, "~/") || strings.HasPrefix(given, "file:")
}

// programs are the endings of names that some system runs when they are opened.
var programs = strings.Fields(`
	.action .apk .app .appimage .bash .bat .chm .cmd .com .command .cpl .csh .deb .desktop .dll .dmg .dylib .elf .exe .fish
	.gadget .hta .inf .ipa .jar .jse .ksh .lnk .msc .msi .msix .msp .mst .ocx .pif .pkg .ps1 .psc1 .psd1 .psm1 .reg .rpm .run
	.scf .scpt .scr .sct .sh .so .sys .url .vbe .vbs .wasm .workflow .ws .wsc .wsf .wsh .xbe .zsh`)

// programName returns the ending that makes a name that of a program, or "". Systems drop dots, spaces and streams
// ("a.exe:x") at the end of a name, so they do not hide it.
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
