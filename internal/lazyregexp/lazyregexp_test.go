package lazyregexp_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// TestExpressions checks that all expressions of the module are valid, because their first use may be in production.
func TestExpressions(t *testing.T) {
	t.Parallel()
	files, found := token.NewFileSet(), 0
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		// Its constants are known although its imports are not.
		config := types.Config{Error: func(error) {}}
		constants, _ := config.Check(name, files, []*ast.File{file}, nil)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || types.ExprString(call.Fun) != "lazyregexp.New" {
				return true
			}
			found++
			value, err := types.Eval(files, constants, call.Pos(), types.ExprString(call.Args[0]))
			if err == nil {
				_, err = regexp.Compile(constant.StringVal(value.Value))
			}
			if err != nil {
				t.Errorf("%s: %v", files.Position(call.Pos()), err)
			}
			return true
		})
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d expressions, %v", found, err)
	}
}

func TestRegexp(t *testing.T) {
	t.Parallel()
	r := lazyregexp.New(`a(b+)`)
	if !r().MatchString("xabb") || r().MatchString("xa") || r().String() != `a(b+)` {
		t.Errorf("%s does not match as it should", r())
	}
	if got := r().FindStringSubmatch("xabb"); len(got) != 2 || got[1] != "bb" {
		t.Errorf("submatch %q", got)
	}
	if got := r().ReplaceAllStringFunc("abxab", strings.ToUpper); got != "ABxAB" {
		t.Errorf("replaced %q", got)
	}
}
