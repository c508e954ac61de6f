package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const twoPrograms = "\n  exec: {programs: [ls, cat], reason: {en: Lists files., ja: ファイルを一覧します。}}"

func needsKernel(t *testing.T) {
	t.Helper()
	if s := confine.Check(); !s.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands: "+s.Missing())
	}
}

func TestApproveCommands(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	dir := workplace(t, "", asking(twoPrograms)...)
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK,
		"may run programs of your machine on the files in these folders: ls, cat, because: Lists files.",
		"commands: may run ls, cat", "no network")
	if c := consent(t, dir); !slices.Equal(c.Exec.Programs, []string{"ls", "cat"}) {
		t.Errorf("recorded %+v", c.Exec)
	}
	invoke(t, dir, "plugin", "approve", "probe", "--yes", "--program", "cat", "--env", "LANG", "--connect",
		"GitHub.com:443").want(t, exitOK,
		"commands: may run cat, ", "with the variables LANG", "network: TCP connections to github.com:443")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK, "commands: may run cat, ") // kept
	if c := consent(t, dir); !slices.Equal(c.Exec.Connect, []string{"github.com:443"}) || c.Exec.Unconfined {
		t.Errorf("recorded %+v", c.Exec)
	}
	invoke(t, dir, "plugin", "approve", "probe", "--yes", "--connect", "", "--env=", "--unconfined").want(t, exitOK,
		"no network, even where the kernel cannot confine them")
	invoke(t, dir, "plugin", "approve", "probe", "--yes", "--unconfined=false").want(t, exitOK, "no network\n")
	if c := consent(t, dir); len(c.Exec.Connect)+len(c.Exec.Env) > 0 || c.Exec.Unconfined {
		t.Errorf("recorded %+v", c.Exec)
	}
	for _, test := range []struct{ flag, value, want string }{
		{"--program", "sh", "it does not ask to run sh, only ls, cat"},
		{"--program", "*", "it does not ask to run *"},
		{"--program", "a b", `"a b" is neither the name of a program`},
		{"--env", "PATH", `the variable "PATH" cannot be passed on`},
		{"--env", "A=B", `the variable "A=B" cannot be passed on`},
		{"--connect", "github.com:70000", `port "70000" is not a number from 1 to 65535`},
		{"--connect", "443", "it is not HOST:PORT"},
		{"--connect", "0.0.0.0:443", "no grant allows the address 0.0.0.0"},
		{"--port", "443", "--port 443: ports of any host are not granted any more: name the hosts: --connect HOST:443"},
	} {
		invoke(t, dir, "plugin", "approve", "probe", "--yes", test.flag, test.value).want(t, exitUsage, test.want)
	}
	invoke(t, workplace(t, ""), "plugin", "approve", "probe", "--yes", "--program", "ls").want(t, exitUsage,
		"it does not ask to run commands")
}

// shellPlace is a workplace with the plugin shell and a directory work.
func shellPlace(t *testing.T) (dir string) {
	t.Helper()
	dir = must(filepath.EvalSymlinks(t.TempDir()))
	wasm := must(gobuild.Plugin(context.Background(), "../../plugins/shell"))
	text := must(os.ReadFile("../../manifests/shell.yaml"))
	put(t, filepath.Join(dir, "plugins", "shell.wasm"),
		must(wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: text})))
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
	put(t, filepath.Join(dir, "work", "note.txt"), []byte("a note\n"))
	return dir
}

// TestShellRoots runs commands in the directories of --allow-path: by the names of the file tools and the host's, with
// the access of the workspace, and never in one that shows hako's own files.
func TestShellRoots(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	dir := shellPlace(t)
	home := must(filepath.EvalSymlinks(t.TempDir()))
	tree(t, home, "docs/x/", "docs/a.md", "docs/x/b.md", "secret/", "secret/s.md")
	docs := filepath.Join(home, "docs")
	if err := os.Symlink("../secret", filepath.Join(docs, "out")); err != nil {
		t.Fatal(err)
	}
	run := func(code int, arguments map[string]any, want ...string) {
		t.Helper()
		invoke(t, dir, "call", "shell_exec", string(must(json.Marshal(arguments))), "--allow-path", docs,
			"--allow-path",
			dir).want(t, code, want...)
	}
	approve := func(mount string) {
		t.Helper()
		invoke(t, dir, "plugin", "approve", "shell", "--yes", "--mount", "workspace="+mount, "--program", "cat",
			"--program", "cp", "--allow-path", docs).want(t, exitOK, "--allow-path", docs)
	}
	approve("work")
	for _, cwd := range []string{"/docs", docs, "/docs/x/.."} {
		run(exitOK, map[string]any{"command": "cat a.md x/b.md", "cwd": cwd}, "needle in docs/a.md",
			"needle in docs/x/b.md")
	}
	run(exitOK, map[string]any{"command": "cat note.txt " + docs + "/a.md"}, "a note", "needle in docs/a.md")
	run(exitOK, map[string]any{"command": "cp a.md made.md && cat made.md", "cwd": "/docs"}, "needle in docs/a.md")
	for _, path := range []string{"out/s.md", filepath.Join(home, "secret", "s.md"), "../secret/s.md"} {
		run(exitOK, map[string]any{"command": "cat " + path, "cwd": "/docs"}, "ermission denied", "[exit code 1]")
	}
	run(exitFailed, map[string]any{"command": "cat s.md", "cwd": "/docs/out"}, "outside of the working directories")
	run(exitFailed, map[string]any{"command": "cat s.md", "cwd": filepath.Join(home, "secret")},
		"outside of the working directories of commands: they are /workspace, /docs", "parts of it that are hidden")
	run(exitFailed, map[string]any{"command": "cat hako.yaml", "cwd": dir}, "parts of it that are hidden")
	run(exitOK, map[string]any{"command": "cat " + filepath.Join(dir, "hako.yaml")}, "ermission denied")

	approve("work:ro")
	run(exitOK, map[string]any{"command": "cat a.md", "cwd": "/docs"}, "needle in docs/a.md")
	run(exitOK, map[string]any{"command": "cp a.md again.md", "cwd": "/docs"}, "cannot create")
	if _, err := os.Stat(filepath.Join(docs, "again.md")); err == nil {
		t.Error("a command has written to a directory that is read-only")
	}
}

// TestShellWithoutWorkspace: commands cannot use a workspace with hako's own files. None runs in another directory
// instead, which the operator learns at the approval and when looking at the plugins.
func TestShellWithoutWorkspace(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	dir := shellPlace(t)
	extra := must(filepath.EvalSymlinks(t.TempDir()))
	tree(t, extra, "build.log")
	const warning = "commands: none may run in /workspace, because parts of that folder are hidden"
	invoke(t, dir, "plugin", "approve", "shell", "--yes", "--mount", "workspace=.", "--program", "rm", "--program",
		"ls").want(t, exitOK, warning, "--mount workspace=DIR")
	for arguments, want := range map[string]string{
		`{"command":"rm build.log"}`:           "without cwd a command works in /workspace, which commands cannot use",
		`{"command":"rm build.log","cwd":"."}`: `the cwd "." is in /workspace, which commands cannot use`,
	} {
		invoke(t, dir, "call", "shell_exec", arguments).want(t, exitFailed, want, "no other directory for commands")
		invoke(t, dir, "call", "shell_exec", arguments, "--allow-path", extra).want(t, exitFailed, want,
			"set cwd to a directory that commands can use: /"+filepath.Base(extra))
	}
	invoke(t, dir, "call", "shell_exec", `{"command":"ls","cwd":"/`+filepath.Base(extra)+`"}`, "--allow-path",
		extra).want(t, exitOK, "build.log")
	invoke(t, dir, "doctor").want(t, exitOK, "warning  plugin shell: "+warning, "hako plugin inspect shell")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "active", "warning: plugin shell: "+warning)
	invoke(t, dir, "plugin", "approve", "shell", "--yes", "--mount", "workspace=work").want(t, exitOK)
	invoke(t, dir, "call", "shell_exec", `{"command":"ls"}`).want(t, exitOK, "note.txt")
	for _, looks := range [][]string{{"doctor"}, {"plugin", "list"}} {
		if o := invoke(t, dir, looks...); strings.Contains(o.stdout+o.stderr, "none may run") {
			t.Errorf("%v: %s", looks, o)
		}
	}
}

// TestShell takes a command all the way: from the operator's yes through guest, rules and kernel.
func TestShell(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	dir := shellPlace(t)
	invoke(t, dir, "call", "shell_exec", `{"command":"cat note.txt"}`).want(t, exitNotAllowed,
		"hako plugin approve shell")
	invoke(t, dir, "plugin", "approve", "shell", "--yes", "--mount", "workspace=work").want(t, exitUsage,
		"no programs are named that it may run")
	invoke(t, dir, "plugin", "approve", "shell", "--yes", "--mount", "workspace=work", "--program", "cat", "--program",
		"chmod").want(t, exitOK, "commands: may run cat, chmod")
	invoke(t, dir, "call", "shell_exec", `{"command":"cat note.txt | cat"}`).want(t, exitOK, "a note\n")
	invoke(t, dir, "call", "shell_exec", `{"command":"cat","args":["note.txt"]}`).want(t, exitOK, "a note\n")
	invoke(t, dir, "call", "shell_exec", `{"command":"cat nothing"}`).want(t, exitOK, "[exit code 1]")
	invoke(t, dir, "call", "shell_exec", `{"command":"ls"}`).want(t, exitFailed, "ls is not granted")
	put(t, filepath.Join(dir, "hako.policy.yaml"),
		[]byte("version: 1\ncommands:\n  - {name: no secrets, action: deny, programs: [cat], args: ['*.txt'], reason: They are not for you.}\n"))
	invoke(t, dir, "call", "shell_exec", `{"command":"cat note.txt"}`).want(t, exitFailed, "They are not for you.")
	invoke(t, dir, "plugin", "revoke", "shell").want(t, exitOK)
	invoke(t, dir, "call", "shell_exec", `{"command":"cat note.txt"}`).want(t, exitNotAllowed)
}
