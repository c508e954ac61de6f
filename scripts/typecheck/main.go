// Command typecheck type-checks all packages and their tests for another operating system: typecheck GOOS... It reads
// the sources of what they import instead of compiling that, as go vet does, which takes minutes per system.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	failed := false
	for _, system := range os.Args[1:] {
		if err := check(system); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	// ImportMap has those imports whose package has another path than the import declaration, such as vendored ones and
	// those under test.
	ImportMap map[string]string
	// DepOnly reports whether the package is only imported by those that were asked for.
	DepOnly bool
	Module  *struct{ GoVersion string }
	Error   *struct{ Err string }
}

// check type-checks everything for one system and returns all errors.
func check(system string) error {
	list := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,Module,Error", "./...")
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	output, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	packages := map[string]*types.Package{"unsafe": types.Unsafe}
	var all []error
	for decoder := json.NewDecoder(output); ; { // what is imported comes first
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(err, list.Wait())
		}
		// The main packages of test binaries are generated when those are built.
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		checked, err := p.check(packages)
		packages[p.ImportPath] = checked
		all = append(all, err)
	}
	return errors.Join(append(all, list.Wait())...)
}

// check type-checks one package: the bodies of its functions too, unless it is only imported.
func (p *listed) check(packages map[string]*types.Package) (*types.Package, error) {
	if p.Error != nil {
		return nil, errors.New(p.Error.Err)
	}
	var all []error
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{
		IgnoreFuncBodies: p.DepOnly,
		Sizes:            types.SizesFor("gc", "amd64"),
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if found := packages[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("%s is not listed", path)
		}),
		Error: func(err error) { all = append(all, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // without the test that it is built for
	checked, _ := config.Check(path, set, files, nil)
	return checked, errors.Join(all...)
}

// importer is a function as a types.Importer.
type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
