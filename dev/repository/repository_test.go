// Package repository tests the repository as a whole: layers, imports, documents and their links, what may skip, and
// how releases are built.
package repository_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// trees and rootFiles are the folders and files that walk visits. They are listed here because go test caches results by the names and times of all
// that is in a folder that a test reads: reading the root would run the tests again after every build and commit.
var (
	trees     = []string{"cmd", "deploy", "dev", "docs", "examples", "host", "internal", "manifests", "pdk", "plugins", "scripts"}
	rootFiles = []string{"CHANGELOG.md", "CONTRIBUTING.md", "RATIONALE.md", "README.ja.md", "README.md", "embed.go", "embed_test.go"}
)

var chdir = sync.OnceValue(func() error { return os.Chdir("../..") })

// inRoot lets a test run in the root folder. That happens within a test, and not in TestMain, because only then go test
// knows which files the results depend on.
func inRoot(t *testing.T) {
	t.Helper()
	if err := chdir(); err != nil {
		t.Fatal(err)
	}
}

// walk calls visit with the path of every file of the trees and of the rootFiles, except in folders that npm writes and in those whose names are
// among without.
func walk(t *testing.T, visit func(path string) error, without ...string) {
	t.Helper()
	for _, root := range slices.Concat(rootFiles, trees) {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !entry.IsDir():
				return visit(path)
			case entry.Name() == "node_modules" || slices.Contains(without, entry.Name()):
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrees checks that walk visits the folders of all packages.
func TestTrees(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for _, p := range packages(t) {
		if tree, _, _ := strings.Cut(local(p.ImportPath), "/"); tree != "." && tree != "" && !slices.Contains(trees, tree) {
			t.Errorf("%s is in none of the trees", p.ImportPath)
		}
	}
}
