package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// skipCondition matches the conditions under which a test may skip itself: the system, go test -short, and flags of
// tests that a make target sets.
var skipCondition = regexp.MustCompile(`runtime\.GOOS|testing\.Short\(\)|\*[a-z]\w*`)

// maySkip lists the files that may skip tests for another reason.
var maySkip = map[string]string{
	"dev/fakes/freee/schema_test.go":            "the vendor's schema is not part of the project",
	"host/wasm/component/reference_test.go":     "the specification's tests are not part of the project",
	"host/component/tool/sandbox_test.go":       "components built from wasmcp's templates are not part of the project",
	"plugins/hr/reference_test.go":              "the vendor's samples are not part of the project",
	"plugins/weather/reference_test.go":         "the vendor's data are not part of the project",
	"host/sandbox/modules_test.go":              "the test is the process of another test",
	"dev/kit/postgrestest/other.go":             "the file is for other systems",
	"dev/kit/testprogram/unprivileged_other.go": "the file is for other systems",
	"dev/kit/testprogram/testprogram.go":        "it is Missing",
}

// TestSkips: a test that lacks something of the machine calls testprogram.Missing, which fails in CI, instead of
// skipping itself there unnoticed.
func TestSkips(t *testing.T) {
	t.Parallel()
	inRoot(t)
	walk(t, func(name string) error {
		if !strings.HasSuffix(name, ".go") || maySkip[filepath.ToSlash(name)] != "" {
			return nil
		}
		for _, position := range skips(t, name, nil) {
			t.Errorf("%s skips a test: call testprogram.Missing instead, which fails in CI", position)
		}
		return nil
	})
	const example = "package p\nfunc f(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip()\n\t}\n" +
		"\tif err != nil {\n\t\tt.Skip(err)\n\t}\n}"
	if found := skips(t, "example.go", example); len(found) != 1 || found[0].Line != 7 {
		t.Errorf("found %v in the example", found)
	}
}

// skips returns the places where a file skips tests although no skipCondition guards them.
func skips(t *testing.T, name string, source any) (found []token.Position) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var path []ast.Node // from the file to the current node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		method, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name) {
			return true
		}
		allowed := slices.ContainsFunc(path, func(above ast.Node) bool {
			branch, ok := above.(*ast.IfStmt)
			return ok && skipCondition.MatchString(types.ExprString(branch.Cond))
		})
		if !allowed {
			found = append(found, files.Position(n.Pos()))
		}
		return true
	})
	return found
}
