package pdk_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestSignaturesDocumented: docs/authors.md has the signatures of all functions that register handlers or completers.
func TestSignaturesDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/authors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := strings.Join(strings.Fields(string(page)), " ")
	files := token.NewFileSet()
	source, err := parser.ParseFile(files, "pdk.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, declaration := range source.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			prefix := strings.HasPrefix(d.Name.Name, "Handle") || strings.HasPrefix(d.Name.Name, "Complete")
			if d.Recv != nil || !prefix || d.Name.Name == "Handle" {
				continue
			}
			d.Body = nil
		case *ast.GenDecl:
			named, ok := d.Specs[0].(*ast.TypeSpec)
			if !ok || named.Name.Name != "Completer" {
				continue
			}
		}
		found++
		var text bytes.Buffer
		if err := printer.Fprint(&text, files, declaration); err != nil {
			t.Fatal(err)
		}
		if signature := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(documented, signature) {
			t.Errorf("docs/authors.md lacks %s", signature)
		}
	}
	if found != 7 {
		t.Errorf("found %d signatures, want 7", found)
	}
}
