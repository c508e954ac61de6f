package componentbuild

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

// TestPlugin builds projects with commands that stand in for the tools: they write a file.
func TestPlugin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are for a POSIX shell")
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "npm"), "#!/bin/sh\necho npm > build/my-plugin.wasm\n", 0o755)
	write(t, filepath.Join(bin, "cargo"), "#!/bin/sh\nmkdir -p target/wasm32-wasip2/release\n"+
		"echo cargo > target/wasm32-wasip2/release/my_plugin.wasm\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for file, want := range map[string]string{"package.json": "npm", "Cargo.toml": "cargo", "requirements.txt": "python"} {
		dir := t.TempDir()
		if IsProject(dir) {
			t.Error("an empty folder is a project")
		}
		write(t, filepath.Join(dir, file), "", 0o600)
		write(t, filepath.Join(dir, "node_modules", "a"), "", 0o600)
		write(t, filepath.Join(dir, ".venv", "bin", "componentize-py"),
			"#!/bin/sh\necho python > build/my-plugin.wasm\n", 0o755)
		wasm, err := Plugin(t.Context(), dir, "my-plugin")
		if err != nil || strings.TrimSpace(string(wasm)) != want {
			t.Errorf("%s: %q, %v", file, wasm, err)
		}
	}
}

func TestPluginFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are for a POSIX shell")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, test := range []struct{ file, npm, problem string }{
		{"Cargo.toml", "", "cargo is not installed or not in PATH: install Rust"},
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
		if _, err := Plugin(t.Context(), dir, "p"); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v, want %s", test.file, err, test.problem)
		}
	}
}
