package repository_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// racedList has the folders of the packages that "make race" tests under the race detector, one a line. "make weekly" tests all packages so.
const racedList = "dev/repository/testdata/raced.txt"

// A package is raced if its code or its tests, in the files of any system, do one of these:
//
//   - start a goroutine: a go statement, a method Go, or time.AfterFunc and context.AfterFunc;
//   - import a package of concurrent;
//   - have a channel: a type, a send, a receive, or a select statement;
//   - have state that parallel tests may share: a package variable that a function assigns to, increments, takes the address of or calls a method
//     of, unless its initial value is immutable; or a variable outside of a parallel subtest that the subtest assigns to.
//
// The rule errs towards the detector: names are not resolved, so a local variable with the name of a package variable counts as it. What it misses
// is state that a package shares only through another one's values. Tests of the package that owns the state cover that, and so does make weekly.
var (
	concurrent = []string{"sync", "sync/atomic", "golang.org/x/sync", "testing/synctest", "net/http/httptest"}
	immutable  = []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "lazyregexp.New", "os.Getenv", "flag.Bool", "flag.String",
		"flag.Int", "flag.Duration"}
)

func TestRaced(t *testing.T) {
	t.Parallel()
	inRoot(t)
	raced, tested, variables := map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
	sources := map[string][]*ast.File{}
	walk(t, func(file string) error {
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(file))
		sources[folder] = append(sources[folder], source)
		tested[folder] = tested[folder] || strings.HasSuffix(file, "_test.go")
		if variables[folder] == nil {
			variables[folder] = map[string]bool{}
		}
		maps.Copy(variables[folder], packageVariables(source))
		return nil
	}, "testdata")
	for folder, files := range sources {
		raced[folder] = slices.ContainsFunc(files, func(f *ast.File) bool { return needsDetector(f, variables[folder]) })
	}
	var list bytes.Buffer
	for _, folder := range slices.Sorted(maps.Keys(sources)) {
		if raced[folder] && tested[folder] {
			list.WriteString(folder + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(racedList, list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, racedList), list.Bytes()) {
		t.Errorf("%s is not what the sources give: go test ./dev/repository -run TestRaced -update", racedList)
	}
}

// packageVariables returns the variables of a file at package level that may change.
func packageVariables(file *ast.File) map[string]bool {
	found := map[string]bool{}
	for _, d := range file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, s := range general.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name != "_" {
					found[name.Name] = i >= len(spec.Values) || !isImmutable(spec.Values[i])
				}
			}
		}
	}
	return found
}

func isImmutable(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	return ok && slices.Contains(immutable, types.ExprString(call.Fun))
}

// needsDetector reports whether a file of a package with these variables makes the package raced.
func needsDetector(file *ast.File, variables map[string]bool) bool {
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if slices.ContainsFunc(concurrent, func(tree string) bool { return under(imported, tree) }) {
			return true
		}
	}
	found := false
	// changes notes that an expression is changed by a function.
	changes := func(e ast.Expr) {
		name := base(e)
		if mutable, ok := variables[name]; ok {
			_, itself := e.(*ast.Ident)
			found = found || mutable || itself
		}
	}
	for _, d := range file.Decls {
		function, inFunction := d.(*ast.FuncDecl)
		if inFunction && function.Recv == nil && function.Name.Name == "init" {
			continue // before any test
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				found = true
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					found = true
				}
				if n.Op == token.AND && inFunction {
					changes(n.X)
				}
			case *ast.CallExpr:
				method, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if method.Sel.Name == "Go" || method.Sel.Name == "AfterFunc" {
					found = true
				}
				if inFunction && variables[base(method.X)] {
					found = true
				}
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE && inFunction {
					for _, e := range n.Lhs {
						changes(e)
					}
				}
			case *ast.IncDecStmt:
				if inFunction {
					changes(n.X)
				}
			case *ast.FuncLit:
				found = found || isParallel(n) && assignsOutside(n)
			}
			return !found
		})
	}
	return found
}

// base returns the name of the variable that an expression is a part of, or "".
func base(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SliceExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	}
	return ""
}

// isParallel reports whether a function literal is a parallel test.
func isParallel(f *ast.FuncLit) bool {
	return slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool {
		statement, ok := s.(*ast.ExprStmt)
		return ok && strings.HasSuffix(types.ExprString(statement.X), ".Parallel()")
	})
}

// assignsOutside reports whether a function literal assigns to a variable that it does not declare.
func assignsOutside(f *ast.FuncLit) bool {
	own := map[string]bool{"_": true, "": true}
	declare := func(e ast.Node) {
		if name, ok := e.(*ast.Ident); ok {
			own[name.Name] = true
		}
	}
	found := false
	check := func(e ast.Expr) { found = found || !own[base(e)] }
	ast.Inspect(f, func(n ast.Node) bool { // declarations come before uses
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				declare(name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declare(name)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare(n.Key)
				declare(n.Value)
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if n.Tok == token.DEFINE {
					declare(e)
				} else {
					check(e)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		}
		return true
	})
	return found
}

// TestNeedsDetector shows what makes a package raced.
func TestNeedsDetector(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, code string
		want       bool
	}{
		{"nothing", "var limit = 3\nfunc f(x int) int { x++; return x + limit }", false},
		{"an import", "import \"sync/atomic\"\nvar n atomic.Int64", true},
		{"a module of goroutines", "import \"golang.org/x/sync/errgroup\"\nfunc f(g *errgroup.Group) {}", true},
		{"go", "func f() { go f() }", true},
		{"a method Go", "func f(g group) { g.Go(nil) }", true},
		{"a timer", "func f() { time.AfterFunc(1, f) }", true},
		{"a channel", "type T struct { c chan int }", true},
		{"a receive", "func f(t time.Timer) { <-t.C }", true},
		{"an assignment", "var calls int\nfunc f() { calls = 1 }", true},
		{"an increment", "var calls int\nfunc f() { calls++ }", true},
		{"a part", "var seen = map[string]bool{}\nfunc f() { seen[\"a\"] = true }", true},
		{"an address", "var state struct{}\nfunc f() { use(&state) }", true},
		{"a method", "var buffer bytes.Buffer\nfunc f() { buffer.WriteString(\"a\") }", true},
		{"a method of a regular expression", "var r = regexp.MustCompile(\"a\")\nfunc f() { r.MatchString(\"a\") }", false},
		{"init", "var calls int\nfunc init() { calls = 1 }", false},
		{"a parallel subtest", "func f(t *testing.T) { n := 0; t.Run(\"\", func(t *testing.T) { t.Parallel(); n++ }) }", true},
		{"its own variable", "func f(t *testing.T) { t.Run(\"\", func(t *testing.T) { t.Parallel(); n := 0; n++ }) }", false},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "example.go", "package p\n"+test.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := needsDetector(file, packageVariables(file)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
