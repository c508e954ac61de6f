package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestJapaneseFormats: faults have a Japanese text for each format in the source, with the same verbs, and none for
// other formats.
func TestJapaneseFormats(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			addFormats(t, file, used)
		}
	}
	verb := regexp.MustCompile(`%[a-z]`)
	for format := range used {
		translated, ok := japaneseFormats[format]
		switch {
		case format == "%v" || format == "%s": // a text from elsewhere
		case !ok:
			t.Errorf("no Japanese text for %q", format)
		case !slices.Equal(verb.FindAllString(format, -1), verb.FindAllString(translated, -1)):
			t.Errorf("%q has other verbs than %q", translated, format)
		}
	}
	for format := range japaneseFormats {
		if !used[format] {
			t.Errorf("%q is not used", format)
		}
	}
}

// addFormats adds the literal formats of said, invalid and notFound in a file.
func addFormats(t *testing.T, path string, used map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name, isName := call.Fun.(*ast.Ident)
		literal, isLiteral := call.Args[0].(*ast.BasicLit)
		if !isName || !isLiteral || literal.Kind != token.STRING {
			return true
		}
		format, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		switch name.Name {
		case "notFound":
			used["there is no "+format+" %q"] = true
		case "said", "invalid":
			used[format] = true
		}
		return true
	})
}
