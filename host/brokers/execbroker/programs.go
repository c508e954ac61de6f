package execbroker

import (
	"bufio"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
)

// searchPath lists the directories of programs. It is also the PATH of commands.
var searchPath = []string{"/usr/local/bin", "/usr/bin", "/bin"}

// programSet holds the granted programs and the files that they need.
type programSet struct {
	programs []confine.Program
	// execute and read are files and directories that the programs execute and read.
	execute, read []string
}

// resolvePrograms finds the programs with the given names or paths and resolves links. missing are those that do not
// exist.
func resolvePrograms(names []string) (i programSet, missing []string) {
	for _, name := range names {
		switch path := find(name); {
		case name == manifest.AnyProgram:
			i.addInstalled()
		case path == "":
			missing = append(missing, name)
		default:
			i.programs = append(i.programs, confine.Program{Name: filepath.Base(name), Path: path})
			i.addDependencies(path, 0)
		}
	}
	slices.Sort(i.execute)
	i.execute = slices.Compact(i.execute)
	return i, missing
}

// find returns the file of a program by its name or absolute path, with links resolved; "" if there is none.
func find(name string) string {
	candidates := []string{name}
	if !filepath.IsAbs(name) {
		candidates = nil
		for _, dir := range searchPath {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	for _, candidate := range candidates {
		path, err := filepath.EvalSymlinks(candidate)
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// addInstalled adds all installed programs and the programs that they start.
func (i *programSet) addInstalled() {
	for _, dir := range searchPath {
		if real, err := filepath.EvalSymlinks(dir); err == nil && !slices.ContainsFunc(i.programs,
			func(p confine.Program) bool { return p.Path == real }) {
			i.programs = append(i.programs, confine.Program{Name: manifest.AnyProgram, Path: real})
		}
	}
	i.execute = append(i.execute, existing("/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local/lib",
		"/usr/local/libexec")...)
}

// helpers are the directories of the programs that a program needs to run.
var helpers = map[string][]string{
	"git": {"/usr/lib/git-core", "/usr/libexec/git-core"},
	"gcc": {"/usr/lib/gcc", "/usr/libexec/gcc"}, "g++": {"/usr/lib/gcc", "/usr/libexec/gcc"},
}

// maxInterpreters limits the depth of scripts whose interpreters are scripts.
const maxInterpreters = 4

// addDependencies adds the files that the program at path needs to start.
func (p *programSet) addDependencies(path string, depth int) {
	p.execute = append(p.execute, existing(helpers[filepath.Base(path)]...)...)
	if tree := ownTree(path); tree != "" {
		p.execute, p.read = append(p.execute, tree), append(p.read, tree)
	}
	if loader := elfInterpreter(path); loader != "" {
		p.execute = append(p.execute, loader)
		return
	}
	for _, interpreter := range interpreters(path) {
		if file := find(interpreter); file != "" && depth < maxInterpreters {
			p.execute = append(p.execute, file)
			p.addDependencies(file, depth+1)
		}
	}
}

// ownTree returns the installation directory of a program that has its own, such as /usr/local/go or /opt/tool; else
// "".
func ownTree(path string) string {
	dir, bin := filepath.Split(filepath.Dir(path))
	tree := filepath.Clean(dir)
	if bin != "bin" || slices.Contains([]string{"/", "/usr", "/usr/local", "/opt"}, tree) {
		return ""
	}
	for _, place := range []string{"/usr/", "/opt/", "/nix/store/"} {
		if strings.HasPrefix(tree, place) {
			return tree
		}
	}
	return ""
}

// elfInterpreter returns the dynamic linker of an ELF file; "" if it has none or is not an ELF file.
func elfInterpreter(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(part.Open(), 4096))
		if err != nil {
			return ""
		}
		return find(string(bytes.TrimRight(name, "\x00")))
	}
	return ""
}

// interpreters returns the programs in a script's first line ("#!/usr/bin/env python3"), except shells, whose scripts
// confine interprets.
func interpreters(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	line, _ := bufio.NewReaderSize(file, 256).ReadSlice('\n')
	first, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return nil
	}
	words := strings.Fields(string(first))
	switch {
	case len(words) == 0 || judge.IsShell(filepath.Base(words[0])):
		return nil
	case filepath.Base(words[0]) != "env":
		return words[:1]
	}
	if i := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") }); i >= 0 &&
		!judge.IsShell(words[1+i]) {
		return []string{words[0], words[1+i]}
	}
	return nil
}

// systemPaths returns what system programs read: libraries and their data. It contains no secrets.
func systemPaths(network bool) []string {
	paths := []string{
		"/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/lib", "/lib32", "/lib64", "/usr/libexec",
		"/usr/share", "/usr/include",
		"/usr/local/lib", "/usr/local/share", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/localtime", "/etc/timezone",
		"/etc/locale.alias", "/etc/mime.types", "/etc/magic",
	}
	if network {
		paths = append(paths, "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
			"/etc/pki/ca-trust", "/etc/ca-certificates",
			"/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/gai.conf", "/etc/host.conf")
	}
	return existing(paths...)
}

// existing returns those of paths that exist, with links resolved.
func existing(paths ...string) []string {
	var list []string
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(list, real) {
			list = append(list, real)
		}
	}
	return list
}

// environment returns the variables that every command gets, and the granted variables of the host.
func environment(granted, environ []string) []string {
	env := []string{
		"PATH=" + strings.Join(searchPath, ":"), "LANG=C.UTF-8", "TERM=dumb",
		// There is no terminal.
		"PAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		// As far as git allows, a repository's configuration and hooks start no programs.
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
		// Names are printed as they are, not as "\346\227\245".
		"GIT_CONFIG_KEY_2=core.quotePath", "GIT_CONFIG_VALUE_2=false",
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.Contains(granted, name) {
			continue
		}
		env = replaceVariables(env, []string{variable})
	}
	return env
}

// replaceVariables sets variables in an environment.
func replaceVariables(env, variables []string) []string {
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		env = slices.DeleteFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
		env = append(env, variable)
	}
	return env
}
