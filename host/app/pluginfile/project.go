package pluginfile

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

// project describes how a plugin that is not written in Go is built in its folder, with the tools of its language.
// Building downloads nothing but what cargo does.
type project struct {
	// file is the name of the file that marks a project of this kind.
	file string
	// command is the command line for a plugin, output where it writes the module or component.
	command func(dir, name string) ([]string, error)
	output  func(dir, name string) string
	// install describes how to get the command.
	install string
}

var projects = []project{
	{"package.json", npm, inBuild, "install Node.js from https://nodejs.org"},
	{"Cargo.toml", cargo, cargoOutput,
		"install Rust from https://rustup.rs, then: rustup target add wasm32-wasip1 wasm32-wasip2"},
	{"build.zig", zig, func(_, name string) string { return filepath.Join("zig-out", "bin", name+".wasm") },
		"install Zig from https://ziglang.org, or python3 -m venv .venv && .venv/bin/pip install ziglang, in the plugin's folder"},
	{"requirements.txt", python, inBuild,
		"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt, in the plugin's folder"},
	{"Makefile", makefile, inBuild, "install make"},
}

func findProject(dir string) (project, bool) {
	for _, p := range projects {
		if exists(dir, p.file) && (p.file != "Makefile" || !hasGo(dir)) {
			return p, true
		}
	}
	return project{}, false
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// hasGo reports whether dir has Go sources, whose Makefile is not for the plugin.
func hasGo(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(files) > 0
}

// isProject reports whether dir has the sources of a plugin in a language other than Go.
func isProject(dir string) bool {
	_, ok := findProject(dir)
	return ok
}

// isComponent reports whether the project in dir makes a component: it has WIT definitions, which the tools of some
// languages read in another place.
func isComponent(dir string) bool {
	p, ok := findProject(dir)
	return ok && (exists(dir, "wit") || p.file == "requirements.txt" || p.file == "package.json" &&
		!exists(dir, "asconfig.json"))
}

// buildProject builds the plugin name in dir, which must be a project, and returns the module or component. It fails if the
// tools are not installed, with their own messages, or with ctx's error when ctx ends first.
func buildProject(ctx context.Context, dir, name string) ([]byte, error) {
	p, ok := findProject(dir)
	if !ok {
		return nil, fmt.Errorf("%s has no sources of a plugin", dir)
	}
	out := filepath.Join(dir, p.output(dir, name))
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
	build.Env = append(os.Environ(), "RUST_LIB_BACKTRACE=0") // a backtrace of the tool says nothing about the plugin
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

func inBuild(_, name string) string { return filepath.Join("build", name+".wasm") }

// npm runs the script build of package.json.
func npm(dir, _ string) ([]string, error) {
	if !exists(dir, "node_modules") {
		return nil, fmt.Errorf("the packages of %s are not installed: npm install, in that folder",
			filepath.Join(dir, "package.json"))
	}
	return []string{"npm", "run", "--silent", "build"}, nil
}

// rustTarget is the target of a package: components have WIT definitions.
func rustTarget(dir string) string {
	if exists(dir, "wit") {
		return "wasm32-wasip2"
	}
	return "wasm32-wasip1"
}

func cargo(dir, _ string) ([]string, error) {
	return []string{"cargo", "build", "--quiet", "--release", "--target", rustTarget(dir),
		"--target-dir", "target"}, nil
}

// cargoOutput is the path to which cargo writes the library of a package with the plugin's name.
func cargoOutput(dir, name string) string {
	return filepath.Join("target", rustTarget(dir), "release", strings.ReplaceAll(name, "-", "_")+".wasm")
}

// zig runs build.zig with the compiler of the folder's virtual environment if there is one.
func zig(dir, _ string) ([]string, error) {
	command, err := installed(dir, "zig", "python-zig")
	return []string{command, "build"}, err
}

// python runs componentize-py on the module app, from the virtual environment of the folder if there is one.
func python(dir, name string) ([]string, error) {
	command, err := installed(dir, "componentize-py", "componentize-py")
	return []string{command, "--wit-path", "wit", "--world", "plugin", "componentize", "app", "-o",
		inBuild(dir, name)}, err
}

// installed is the path of script in the virtual environment of dir, or command if it has none.
func installed(dir, command, script string) (string, error) {
	for _, bin := range []string{"bin/" + script, `Scripts\` + script + ".exe"} {
		if relative := filepath.Join(".venv", bin); exists(dir, relative) {
			return filepath.Abs(filepath.Join(dir, relative))
		}
	}
	return command, nil
}

// makefile makes the file that the plugin is expected in.
func makefile(dir, name string) ([]string, error) {
	return []string{"make", "--silent", filepath.ToSlash(inBuild(dir, name))}, nil
}
