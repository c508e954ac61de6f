// Package componentbuild builds plugins that are components with the tools of their languages. It downloads nothing but
// what cargo does.
package componentbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// project says how the component in a folder is built.
type project struct {
	// file tells the project by.
	file string
	// command is the command line for a plugin, output where it writes the component.
	command func(dir, name string) ([]string, error)
	output  func(name string) string
	// install says how to get the command.
	install string
}

var projects = []project{
	{"package.json", npm, inBuild, "install Node.js from https://nodejs.org"},
	{"Cargo.toml", cargo, cargoOutput, "install Rust from https://rustup.rs, then: rustup target add wasm32-wasip2"},
	{"requirements.txt", python, inBuild,
		"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt, in the plugin's folder"},
}

func find(dir string) (project, bool) {
	for _, p := range projects {
		if _, err := os.Stat(filepath.Join(dir, p.file)); err == nil {
			return p, true
		}
	}
	return project{}, false
}

// IsProject reports whether dir has the sources of a component.
func IsProject(dir string) bool {
	_, ok := find(dir)
	return ok
}

// Plugin builds the plugin name in dir, which must be a project, and returns the component. It fails if the tools are not
// installed, with their own messages, or with ctx's error when ctx ends first.
func Plugin(ctx context.Context, dir, name string) ([]byte, error) {
	p, ok := find(dir)
	if !ok {
		return nil, fmt.Errorf("%s has no sources of a component", dir)
	}
	out := filepath.Join(dir, p.output(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(out), 0o755), os.RemoveAll(out)); err != nil {
		return nil, err
	}
	line, err := p.command(dir, name)
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, line[0], line[1:]...)
	build.Dir = dir
	var messages bytes.Buffer
	build.Stdout, build.Stderr = &messages, &messages
	err = build.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is not installed or not in PATH: %s", line[0], p.install)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("build %s: %w", dir, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("build %s: %s: %w\n%s", dir, strings.Join(line, " "), err,
			strings.TrimSpace(messages.String()))
	}
	wasm, err := os.ReadFile(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("build %s: %s did not write %s, where the plugin %s is expected", dir,
			strings.Join(line, " "), out, name)
	}
	return wasm, err
}

func inBuild(name string) string { return filepath.Join("build", name+".wasm") }

// npm runs the script build of package.json.
func npm(dir, _ string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, fmt.Errorf("the packages of %s are not installed: npm install, in that folder",
			filepath.Join(dir, "package.json"))
	}
	return []string{"npm", "run", "--silent", "build"}, nil
}

const rustTarget = "wasm32-wasip2"

func cargo(string, string) ([]string, error) {
	return []string{"cargo", "build", "--quiet", "--release", "--target", rustTarget, "--target-dir", "target"}, nil
}

// cargoOutput is where cargo writes the library of a package with the plugin's name.
func cargoOutput(name string) string {
	return filepath.Join("target", rustTarget, "release", strings.ReplaceAll(name, "-", "_")+".wasm")
}

// python runs componentize-py on the module app, from the virtual environment of the folder if there is one.
func python(dir, name string) ([]string, error) {
	command := "componentize-py"
	for _, bin := range []string{"bin/componentize-py", `Scripts\componentize-py.exe`} {
		path, err := filepath.Abs(filepath.Join(dir, ".venv", bin))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err == nil {
			command = path
		}
	}
	return []string{command, "--wit-path", "wit", "--world", "plugin", "componentize", "app", "-o", inBuild(name)}, nil
}
