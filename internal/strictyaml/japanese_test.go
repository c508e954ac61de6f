package strictyaml

import (
	"errors"
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

// spoken are the packages whose problems have Japanese texts: this one, and those that read the policy and its cases.
var spoken = []string{".", "../../host/govern/policy", "../../host/govern/policy/policytest"}

// TestJapanese: there is a Japanese text for each format of a problem in these packages, with the same verbs, and none
// for other formats.
func TestJapanese(t *testing.T) {
	t.Parallel()
	formats, literals := map[string]bool{}, map[string]bool{}
	for _, dir := range spoken {
		inspect(t, dir, formats, literals)
	}
	if len(formats) < 40 {
		t.Errorf("only %d formats", len(formats))
	}
	for format := range formats {
		if translated, ok := japanese[format]; !ok {
			t.Errorf("no Japanese text for %q", format)
		} else if want, got := verbs(format), verbs(translated); !slices.Equal(want, got) {
			t.Errorf("%q has the verbs %q, not %q", translated, got, want)
		}
	}
	// Words for kinds of things and the text of manifest.ReadText come from other packages too.
	for _, dir := range []string{"../../host/manifest", "../../host/schema", "../../host/grant", "../../host/govern/toolset"} {
		inspect(t, dir, map[string]bool{}, literals)
	}
	for format := range japanese {
		if !literals[format] {
			t.Errorf("%q is not used", format)
		}
	}
}

var verb = regexp.MustCompile(`%[a-z]`)

func verbs(format string) []string { return verb.FindAllString(format, -1) }

// formatOf says which argument of a function is a format or a word.
var formatOf = map[string]int{"textOf": 0, "Problem": 0, "Unknown": 0, "Add": 1, "problem": 2, "newProblem": 3}

// inspect adds the formats of the problems in a package, and all literals.
func inspect(t *testing.T, dir string, formats, literals map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "japanese.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok {
					literals[text] = true
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			i, ok := formatOf[name]
			if !ok || i >= len(call.Args) {
				return true
			}
			if text, ok := literal(call.Args[i]); ok && text != "%v" && text != "%s" {
				formats[text] = true
			}
			return true
		})
	}
}

// literal returns the text of a literal, or of several that are added.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, ok2 := literal(e.Y)
		return left + right, ok && ok2
	}
	return "", false
}

// TestProblemsIn: a reader gets the problems of a document in Japanese, each at its place.
func TestProblemsIn(t *testing.T) {
	t.Parallel()
	read := func(v Value) {
		var flag bool
		var text string
		v.Object(Fields{"flag": Bool(&flag), "text": String(&text), "list": func(v Value) { v.List(func(int, Value) {}) }})
	}
	for document, want := range map[string]string{
		"flg: true":             `1:1: キー "flg" はありません。"flag" の誤りではありませんか`,
		"flag: [x]":             "1:7: flag: true か false を書いてください (現在はリスト)",
		"\ntext: 3":             `2:7: text: 文字列を書いてください (現在は数)。文字列なら "3" と書きます`,
		"list: x":               "1:7: list: リストを書いてください (現在は文字列)。[a, b] のように角括弧で囲みます",
		"a: &x 1":               "1:4: a: アンカーとエイリアスは使えません。値をそのまま書いてください",
		"a: 1\na: 2":            `2:1: キー "a" は 1 行目にもあります。どちらかを削除してください`,
		"a: 1\nb: 'x\n":         "2 行目: YAML の構文エラーです (パーサーの説明: found unexpected end of stream)",
		"flag: true\n\"%s\": 1": `2:1: キー "%s" はありません。使えるのは flag, list, text です`,
	} {
		err := Read([]byte(document), 1000, read, nil)
		list, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%q: %v", document, err)
			continue
		}
		if got := list.In("ja-JP"); got != want {
			t.Errorf("%q: got %s, want %s", document, got, want)
		}
		if got := list.In("fr"); got != list.Error() {
			t.Errorf("%q: in French %s", document, got)
		}
	}
	many := &Error{}
	for range maxProblems + 2 {
		many.Add("a", "the document is empty")
	}
	if got := many.In("ja"); !strings.HasSuffix(got, "\nほか 2 件") {
		t.Error(got)
	}
	if lines := many.Lines("x.yaml", "error", "ja"); len(lines) != maxProblems+1 || lines[0] != "x.yaml: error: a: 文書が空です" ||
		lines[maxProblems] != "x.yaml: ほか 2 件" {
		t.Errorf("%q", lines)
	}
}
