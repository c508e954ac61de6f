package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/visibletest"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/visible"
)

// atTerminal is invoke with standard output and standard error at a terminal.
func atTerminal(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin:  strings.NewReader(""),
		stdout: &terminal.Screen{Writer: visible.NewWriter(&stdout), Terminal: true},
		stderr: &terminal.Screen{Writer: visible.NewWriter(&stderr), Terminal: true},
	}
	code := a.run(t.Context(), append([]string{"--directory", dir}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

// TestHostileTerminal: what others wrote does nothing to the terminal of who reads it, whichever command shows it.
func TestHostileTerminal(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	for name, trick := range visibletest.Tricks {
		t.Run("name of a file: "+name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				t.Skip("no such names of files")
			}
			dir := t.TempDir()
			put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"))
			file := filepath.Join(dir, "plugins", strings.ReplaceAll(trick, "/", "_")+".wasm")
			put(t, file, []byte("no module"))
			for _, args := range [][]string{{"plugin", "list"}, {"tools"}, {"config", "check"}, {"config", "show"}, {"plugin", "inspect", file}, {"plugin", "check", file}, {"doctor"}} {
				o := invoke(t, dir, args...)
				if visibletest.Check(t, o.stdout); !strings.HasSuffix(file, "a\nFORGED.wasm") || args[1:] == nil {
					visibletest.Check(t, o.stderr)
				} else if r, found := visible.First(o.stderr, "\n\t"); found {
					t.Errorf("%U reaches standard error", r)
				}
			}
		})
		t.Run("name of a tool: "+name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"call", trick, "{}"}, {"policy", "explain", trick}, {"plugin", "inspect", trick}, {"audit", "query", "--tool", trick}} {
				if r, found := visible.First(invoke(t, dir, args...).String(), "\n\t"); found {
					t.Errorf("%v: %U reaches the terminal", args, r)
				}
			}
		})
		t.Run("result: "+name, func(t *testing.T) {
			t.Parallel()
			valid := strings.ToValidUTF8(trick, "\u202e")
			arguments, _ := json.Marshal(map[string]string{"text": valid})
			if o := atTerminal(t, dir, "call", "probe_echo", string(arguments)); o.code != exitOK {
				t.Error(o)
			} else if r, found := visible.First(o.stdout, "\n\t"); found {
				t.Errorf("%U reaches the terminal: %q", r, o.stdout)
			}
			if o := invoke(t, dir, "call", "probe_echo", string(arguments)); o.stdout != valid+"\n" {
				t.Errorf("a pipe gets %q, want %q", o.stdout, valid)
			}
			var result struct{ Content []struct{ Text string } }
			o := atTerminal(t, dir, "call", "probe_echo", string(arguments), "--json")
			if visibletest.Check(t, o.stdout); json.Unmarshal([]byte(o.stdout), &result) != nil ||
				len(result.Content) != 1 ||
				result.Content[0].Text != valid {
				t.Errorf("JSON is %q", o.stdout)
			}
		})
		t.Run("log: "+name, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{"text", "json"} {
				var log bytes.Buffer
				a := &app{stderr: terminal.NewScreen(&log)}
				a.logger(&config.Config{LogFormat: format}, slog.LevelInfo).With(trick, "key").Info(trick, "err",
					&fs.PathError{Op: "open", Path: trick, Err: fs.ErrExist}, "text", trick)
				if visibletest.Check(t, log.String()); strings.Count(log.String(), "\n") != 1 {
					t.Errorf("a record of several lines: %q", log.String())
				}
			}
		})
	}
	t.Cleanup(func() { // after the calls
		for _, command := range []string{"tail", "query"} {
			visibletest.Check(t, invoke(t, dir, "audit", command).stdout)
		}
	})
}

// TestPrinting: only the screen prints text that may come from others, in this package and in host/frontend/terminal.
func TestPrinting(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../host/frontend/terminal/*.go")
	if err != nil || len(more) == 0 {
		t.Fatalf("host/frontend/terminal: %v", err)
	}
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "screen.go" {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && printsUnchecked(call) {
				t.Errorf("%s prints past the screen: use printf", fset.Position(call.Pos()))
			}
			if s, ok := n.(*ast.SelectorExpr); ok && (isNamed(s, "os", "Stdout", "Stderr") && file != "main.go" ||
				isNamed(s, "a", "pipe") && file != "main.go" && file != "serve.go") {
				t.Errorf("%s goes around the screen", fset.Position(s.Pos()))
			}
			return true
		})
	}
}

// printsUnchecked reports whether a call prints more than words of its own, elsewhere than into a variable or to what
// reads data.
func printsUnchecked(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isNamed(s, "fmt", "Fprint", "Fprintf", "Fprintln", "Print", "Printf", "Println") &&
		!isNamed(s, "io", "WriteString") {
		return false
	}
	switch to := call.Args[0].(type) {
	case *ast.UnaryExpr:
		return false
	case *ast.CallExpr:
		if target, ok := to.Fun.(*ast.SelectorExpr); ok && target.Sel.Name == "data" {
			return false
		}
	case *ast.Ident:
		if to.Name == "sum" || to.Name == "data" {
			return false
		}
	}
	for _, arg := range call.Args[1:] {
		if literal, ok := arg.(*ast.BasicLit); !ok || literal.Kind != token.STRING {
			return true
		}
	}
	return false
}

func isNamed(s *ast.SelectorExpr, pkg string, names ...string) bool {
	x, ok := s.X.(*ast.Ident)
	if !ok || x.Name != pkg {
		return false
	}
	for _, name := range names {
		if s.Sel.Name == name {
			return true
		}
	}
	return false
}
