package hako_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/hako-run/hako"
)

// TestPDK checks that a new plugin finds every package of this module that the PDK is made of.
func TestPDK(t *testing.T) {
	t.Parallel()
	const module = "github.com/hako-run/hako/"
	err := fs.WalkDir(hako.PDK, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := hako.PDK.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if dir, ours := strings.CutPrefix(imported, module); ours {
				if _, err := fs.Stat(hako.PDK, dir); err != nil {
					t.Errorf("%s imports %s, which is not embedded: add it to embed.go", name, imported)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
