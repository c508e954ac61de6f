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

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// tricks are texts that do something to a terminal, or show something else than they hold. FORGED must not begin a
// line.
var tricks = map[string]string{
	"clears the screen":            "a\x1b[2J\x1b[1;1Hb",
	"hides its target (OSC 8)":     "a\x1b]8;;https://evil.example\x1b\\bank.example\x1b]8;;\x1b\\b",
	"writes the clipboard":         "a\x1b]52;c;ZXZpbA==\x07b",
	"sets the title":               "a\x1b]0;root@prod\x07b",
	"sends an answer (DECRQSS)":    "a\x1bP$qm\x1b\\b",
	"draws (sixel)":                "a\x1bPq#0;2;0;0;0~\x1b\\b",
	"overwrites its line":          "a\rFORGED",
	"goes back":                    "denied\b\b\b\b\b\ballowed",
	"moves up":                     "a\x1b[1A\x1b[2KFORGED",
	"CSI of eight bits":            "a\u009b2Jb",
	"CSI of one byte":              "a\x9b2Jb",
	"OSC of eight bits":            "a\u009d0;title\u009cb",
	"bytes that are not UTF-8":     "a\xff\xfe\xc0\x80b",
	"a line of its own":            "a\nFORGED",
	"a next line (NEL)":            "a\u0085FORGED",
	"a line separator":             "a\u2028FORGED",
	"a column of its own":          "a\tactive\tFORGED",
	"vertical tab and form feed":   "a\v\fFORGED",
	"reorders (RLO)":               "invoice\u202egpj.exe",
	"reorders (isolates)":          "a\u2067b\u2069\u2066c\u2069",
	"right-to-left marks":          "a\u200f\u061cb",
	"says it in tags":              "a\U000e0049\U000e0067\U000e006eb",
	"says it in selectors":         "a\ufe00\ufe01\U000e0100\U000e01efb",
	"zero width":                   "ad\u200bm\u200ci\u200dn\u2060\ufeff",
	"fillers and blanks":           "a\u3164\u115f\u1160\uffa0\u2800b",
	"soft hyphens":                 "ad\u00admin",
	"annotations":                  "a\ufff9b\ufffac\ufffb",
	"marks over neighbouring rows": "a" + strings.Repeat("\u0300\u0316", 50),
	"rings and deletes":            "a\x07\x7fb",
}

// shows fails the test if text holds anything hidden, or a forged line.
func shows(t *testing.T, text string) {
	t.Helper()
	if r, found := visible.First(text, "\n\t"); found {
		t.Errorf("%U reaches the terminal: %q", r, text)
	}
	if strings.Contains("\n"+text, "\nFORGED") {
		t.Errorf("a line is forged: %q", text)
	}
}

// atTerminal is invoke with standard output and standard error at a terminal.
func atTerminal(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &screen{visible.NewWriter(&stdout), true},
		stderr: &screen{visible.NewWriter(&stderr), true}}
	code := a.run(t.Context(), append([]string{"--directory", dir}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

// TestHostileTerminal: what others wrote does nothing to the terminal of who reads it, whichever command shows it.
func TestHostileTerminal(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	for name, trick := range tricks {
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
				if shows(t, o.stdout); !strings.HasSuffix(file, "a\nFORGED.wasm") || args[1:] == nil {
					shows(t, o.stderr)
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
			if shows(t, o.stdout); json.Unmarshal([]byte(o.stdout), &result) != nil || len(result.Content) != 1 ||
				result.Content[0].Text != valid {
				t.Errorf("JSON is %q", o.stdout)
			}
		})
		t.Run("log: "+name, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{"text", "json"} {
				var log bytes.Buffer
				a := &app{stderr: newScreen(&log)}
				a.logger(&config.Config{LogFormat: format}, slog.LevelInfo).With(trick, "key").Info(trick, "err",
					&fs.PathError{Op: "open", Path: trick, Err: fs.ErrExist}, "text", trick)
				if shows(t, log.String()); strings.Count(log.String(), "\n") != 1 {
					t.Errorf("a record of several lines: %q", log.String())
				}
			}
		})
		t.Run("chat: "+name, func(t *testing.T) {
			t.Parallel()
			for _, colour := range []bool{false, true} {
				var screenful bytes.Buffer
				out := newScreen(&screenful)
				surface := newChatSurface(&chatSession{app: &app{stdout: out, stderr: out}})
				surface.colour = colour
				surface.session.flags.verbose = true
				surface.ToolStarted("1", trick, trick)
				surface.ToolEnded("1", pipeline.OK, trick)
				surface.Notice("", trick)
				pipeSurface{surface.session}.Notice("", trick)
				shows(t, strings.NewReplacer(dim, "", green, "", red, "", yellow, "", plain,
					"").Replace(screenful.String()))
				screenful.Reset()
				for i := range len(trick) { // the pieces in which a model writes
					surface.Text(trick[i : i+1])
				}
				if r, found := visible.First(screenful.String(), "\n\t\u200c\u200d"); found && r != '\u200c' &&
					r != '\u200d' {
					t.Errorf("%U of an answer in pieces reaches the terminal: %q", r, screenful.String())
				}
			}
		})
		t.Run("progress: "+name, func(t *testing.T) {
			t.Parallel()
			var line bytes.Buffer
			p := newProgress(&screen{visible.NewWriter(&line), true})
			p.show(abi.Progress{Progress: 1, Total: 2, Message: trick})
			if text, ok := strings.CutPrefix(line.String(), eraseLine); !ok || strings.ContainsAny(text, "\n\t") {
				t.Errorf("progress is %q", line.String())
			} else {
				shows(t, text)
			}
		})
	}
	t.Cleanup(func() { // after the calls
		for _, command := range []string{"tail", "query"} {
			shows(t, invoke(t, dir, "audit", command).stdout)
		}
	})
}

// TestPrinting: in this package nothing but the screen prints what may be others' words.
func TestPrinting(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "screen.go" || file == "web.go" {
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
