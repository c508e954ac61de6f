package pluginfile

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestBuildProject builds projects with commands that stand in for the tools: they write a file.
func TestBuildProject(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fakes are for a POSIX shell")
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "npm"), "#!/bin/sh\necho npm > build/my-plugin.wasm\n", 0o755)
	write(t, filepath.Join(bin, "make"), "#!/bin/sh\necho $0 > $2\n", 0o755)
	write(t, filepath.Join(bin, "zig"), "#!/bin/sh\nmkdir -p zig-out/bin && echo $1 > zig-out/bin/my-plugin.wasm\n", 0o755)
	// $5 is the target.
	write(t, filepath.Join(bin, "cargo"), "#!/bin/sh\nmkdir -p target/$5/release\n"+
		"echo $5 > target/$5/release/my_plugin.wasm\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		file, also, want string
		component        bool
	}{
		{"package.json", "", "npm", true},
		{"package.json", "asconfig.json", "npm", false},
		{"Cargo.toml", "wit/world.wit", "wasm32-wasip2", true},
		{"Cargo.toml", "", "wasm32-wasip1", false},
		{"requirements.txt", "", "python", true},
		{"build.zig", "requirements.txt", "build", false},
		{"Makefile", "", filepath.Join(bin, "make"), false},
	} {
		dir := t.TempDir()
		if isProject(dir) {
			t.Error("an empty folder is a project")
		}
		write(t, filepath.Join(dir, test.file), "", 0o600)
		if test.also != "" {
			write(t, filepath.Join(dir, test.also), "", 0o600)
		}
		write(t, filepath.Join(dir, "node_modules", "a"), "", 0o600)
		write(t, filepath.Join(dir, ".venv", "bin", "componentize-py"),
			"#!/bin/sh\necho python > build/my-plugin.wasm\n", 0o755)
		wasm, err := buildProject(t.Context(), dir, "my-plugin")
		if err != nil || strings.TrimSpace(string(wasm)) != test.want || isComponent(dir) != test.component {
			t.Errorf("%s and %q: %q, %v, component %v", test.file, test.also, wasm, err, isComponent(dir))
		}
	}
}

// TestMakefileOfGo: a Makefile beside Go sources is not how the plugin is built.
func TestMakefileOfGo(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Makefile"), "", 0o600)
	write(t, filepath.Join(dir, "main.go"), "package main\n", 0o600)
	if isProject(dir) {
		t.Error("a Go plugin with a Makefile would be built with make")
	}
}

func TestBuildProjectFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fakes are for a POSIX shell")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, test := range []struct{ file, npm, problem string }{
		{"Cargo.toml", "", "cargo is not installed or not in PATH: install Rust"},
		{"build.zig", "", "zig is not installed or not in PATH: install Zig"},
		{"Makefile", "", "make is not installed or not in PATH"},
		{"requirements.txt", "", "componentize-py is not installed or not in PATH: python3 -m venv"},
		{"package.json", "", "npm install"},
		{"package.json", "#!/bin/sh\necho no such world; exit 1\n", "no such world"},
		{"package.json", "#!/bin/sh\n", "did not write"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, test.file), "", 0o600)
		if test.npm != "" {
			write(t, filepath.Join(bin, "npm"), test.npm, 0o755)
			write(t, filepath.Join(dir, "node_modules", "a"), "", 0o600)
		}
		if _, err := buildProject(t.Context(), dir, "p"); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v, want %s", test.file, err, test.problem)
		}
	}
}
