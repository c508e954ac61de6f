package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Commands in the documents are run, so that they work when people paste them: the fenced blocks marked "sh" in
// README*.md and below docs. All blocks of a document are one script, which runs in an empty directory with this hako and
// hako-dev in PATH, recordings instead of the network, and no module proxy. These blocks are left out:
//
//   - "sh skip" and every other kind, such as "console" for transcripts
//   - "sh toolchain" unless TEST_TOOLCHAINS is set: they need npm, Python or clang, and registries
//   - "sh rust" likewise, or if Rust cannot compile for WASI
//   - those with a command of notHere
//
// A translation whose commands are those of its original, but for comments, is not run again.

// notHere are commands that need the repository, a network or another program.
var notHere = []string{"make", "git", "docker", "kubectl", "npx", "claude", "brew"}

var fence = regexp.MustCompile("(?ms)^```sh *([a-z]*)\n(.*?)^```$")

// script returns what is to be run of a document.
func script(document string) string {
	var b strings.Builder
	for _, block := range fence.FindAllStringSubmatch(document, -1) {
		runs := block[1] == ""
		if os.Getenv("TEST_TOOLCHAINS") != "" {
			runs = runs || block[1] == "toolchain" || block[1] == "rust" && hasRust()
		}
		if runs && !needsMore(block[2]) {
			b.WriteString(block[2])
		}
	}
	return strings.ReplaceAll(b.String(), "./bin/hako", "hako")
}

// hasRust reports whether there is Rust with the target of plugins. No package of Debian has both, so CI may lack it.
func hasRust() bool {
	dir, err := exec.Command("rustc", "--print", "target-libdir", "--target", "wasm32-wasip1").Output()
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSpace(string(dir)))
	return err == nil
}

func needsMore(block string) bool {
	for line := range strings.Lines(block) {
		if words := strings.Fields(line); len(words) > 0 && slices.Contains(notHere, words[0]) {
			return true
		}
	}
	return strings.Contains(block, "go install")
}

var comment = regexp.MustCompile(`(?m)(^|[ \t]+)#.*$`)

// withoutComments returns a script without its comments.
func withoutComments(script string) string { return comment.ReplaceAllString(script, "") }

func TestDocuments(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	needsPlugins(t)
	bin := wrapper(t)
	readmes := must(filepath.Glob("../../README*.md"))
	documents := slices.Concat(readmes, must(filepath.Glob("../../docs/*.md")),
		must(filepath.Glob("../../docs/*/*.md")))
	for _, path := range documents {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text := script(string(must(os.ReadFile(path))))
			if text == "" {
				return
			}
			if original := strings.TrimSuffix(path, ".ja.md") + ".md"; original != path && slices.Contains(documents, original) &&
				withoutComments(script(string(must(os.ReadFile(original))))) == withoutComments(text) {
				return
			}
			shell := exec.CommandContext(t.Context(), "sh", "-eux", "-c", text)
			shell.Dir = t.TempDir()
			shell.Env = append(os.Environ(), "MOCK_MODE=true", "GOPROXY=off", "PATH="+bin+":"+os.Getenv("PATH"))
			if output, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// wrapper is a directory with a command called hako that is this test binary, and with hako-dev, which runs it.
func wrapper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "hako-dev"), "../hako-dev")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hako-dev: %v\n%s", err, output)
	}
	must(os.ReadDir("../hako-dev")) // the go command runs the test again after changes in folders that it has read
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, must(os.Executable()))
	if err := os.WriteFile(filepath.Join(dir, "hako"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTranslatedCommands: the tests run the commands of languages.md, which are those of its translation.
func TestTranslatedCommands(t *testing.T) {
	t.Parallel()
	commands := func(file string) string {
		var b strings.Builder
		for _, block := range fence.FindAllStringSubmatch(string(must(os.ReadFile("../../docs/"+file))), -1) {
			b.WriteString(block[0] + "\n")
		}
		return b.String()
	}
	if en, ja := commands("languages.md"), commands("languages.ja.md"); en != ja || en == "" {
		t.Errorf("the commands differ: in English\n%sin Japanese\n%s", en, ja)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	document := "# Title\n\n```sh\n./bin/hako version\n./bin/hako-dev chat\n```\n\n```sh skip\nhako serve\n```\n\n```sh\nmake run\n```\n\n```console\n$ hako\n```\n\n" +
		"```sh\ngo install example.com/hako@latest\n```\n\n```sh\nhako tools\nhako schema\n```\n"
	if got, want := script(document), "hako version\nhako-dev chat\nhako tools\nhako schema\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
