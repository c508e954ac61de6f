package repository_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// TestExpressions checks that all expressions for lazyregexp are valid, because their first use may be in production.
func TestExpressions(t *testing.T) {
	t.Parallel()
	inRoot(t)
	files, found := token.NewFileSet(), 0
	walk(t, func(name string) error {
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
	if found == 0 {
		t.Error("no expressions found")
	}
}
