package confine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/hako-run/hako/host/judge"
)

// interpret runs a line or the text of a script like a shell. It starts each program with exec.
func (s *supervisor) interpret(ctx context.Context, at procEnv, text, name string, parameters []string) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), name)
	if err != nil {
		return at.refuse(2, "%v", err)
	}
	d := newDialect(file)
	defer d.close()
	if err := d.refuse(file); err != nil {
		return at.refuse(2, "%v", err)
	}
	d.rewrite(file, text)
	unread := endUnread(d.functions)
	runner, err := interp.New(
		interp.Dir(at.dir),
		interp.Env(expand.ListEnviron(at.env...)),
		interp.StdIO(at.stdin, at.stdout, at.stderr),
		interp.Params(parameters...),
		interp.CallHandler(func(ctx context.Context, argv []string) ([]string, error) {
			argv, err := d.call(ctx, argv)
			if err != nil {
				return nil, err
			}
			return unread(ctx, argv)
		}),
		interp.OpenHandler(d.open(interp.DefaultOpenHandler())),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, argv []string) error {
				return s.handle(ctx, argv, d.track(interp.HandlerCtx(ctx).Env, at.track))
			}
		}),
	)
	if err != nil {
		return err
	}
	err = runner.Run(ctx, file)
	if status := interp.ExitStatus(0); errors.As(err, &status) {
		return &statusError{exit: Exit{Code: int(status)}}
	}
	return err
}

// handle starts a program for the interpreter.
func (s *supervisor) handle(ctx context.Context, argv []string, track tracker) error {
	h := interp.HandlerCtx(ctx)
	at := procEnv{dir: h.Dir, env: s.environment(h.Env), stdin: h.Stdin, stdout: h.Stdout, stderr: h.Stderr, track: track}
	err := s.exec(ctx, at, argv)
	var status *statusError
	if !errors.As(err, &status) {
		return err
	}
	if status.signal != 0 {
		return interp.ExitStatus(statusSignaled + int(status.signal))
	}
	return interp.ExitStatus(status.exit.Code)
}

// statusSignaled is added to the number of the signal that ended a program.
const statusSignaled = 128

// endUnread returns a handler that ends a part of a pipeline when one of its builtins writes to a pipe without a reader,
// as SIGPIPE ends a shell there ("while true; do echo y; done | head -1"). The interpreter drops the write errors of
// builtins. functions are the names of the script's functions, which precede builtins.
func endUnread(functions map[string]bool) interp.CallHandlerFunc {
	return func(ctx context.Context, argv []string) ([]string, error) {
		stdout, ok := interp.HandlerCtx(ctx).Stdout.(*os.File)
		if !ok || functions[argv[0]] || !writes(argv) || !readerGone(stdout) {
			return argv, nil
		}
		return []string{"exit", strconv.Itoa(statusSignaled + int(syscall.SIGPIPE))}, nil
	}
}

// functions returns the names of the functions in a script.
func functions(file *syntax.File) map[string]bool {
	names := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if f, ok := node.(*syntax.FuncDecl); ok && f.Name != nil {
			names[f.Name.Value] = true
		}
		return true
	})
	return names
}

// writes reports whether a command is a builtin that does nothing but write to its standard output.
func writes(argv []string) bool {
	for len(argv) > 1 && (argv[0] == "builtin" || argv[0] == "command") && !strings.HasPrefix(argv[1], "-") {
		argv = argv[1:]
	}
	switch argv[0] {
	case "dirs", "help", "pwd", "times":
		return true
	case "echo":
		return !slices.Contains(argv[1:], "-n") || strings.Join(argv[1:], "") != "-n"
	case "printf":
		if len(argv) == 1 {
			return false
		}
		text, n, err := expand.Format(nil, argv[1], argv[2:])
		return err == nil && (text != "" || n < len(argv)-2)
	}
	return false
}

// environment returns the variables for programs: those that the line exports. Variables that select programs or
// libraries keep their original values.
func (s *supervisor) environment(env expand.Environ) []string {
	var list []string
	env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.Kind == expand.String && !judge.IsLoader(name) {
			list = append(list, name+"="+v.Str)
		}
		return true
	})
	for _, variable := range s.spec.Env {
		if name, _ := split(variable); judge.IsLoader(name) {
			list = append(list, variable)
		}
	}
	return list
}

// maxScript limits a script, in bytes.
const maxScript = 1 << 20

// shell acts as a shell with the given arguments. It runs the line after -c, a script, or standard input.
func (s *supervisor) shell(ctx context.Context, at procEnv, argv []string) error {
	o := parseShell(argv[1:])
	switch {
	case o.line && len(o.rest) == 0:
		return at.refuse(2, "%s: -c needs a line", argv[0])
	case o.line:
		return s.interpret(ctx, at, o.rest[0], "", o.parameters(o.rest[min(2, len(o.rest)):]))
	case o.stdin || len(o.rest) == 0:
		return s.script(ctx, at, at.stdin, argv[0], o.parameters(o.rest))
	}
	path := o.rest[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(at.dir, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return at.refuse(statusNotFound, "%v", err)
	}
	defer file.Close()
	return s.script(ctx, at, file, o.rest[0], o.parameters(o.rest[1:]))
}

// shellOptions are the options of a shell.
type shellOptions struct {
	line, stdin bool     // -c, -s
	set         []string // options of the command "set": -e, -o pipefail
	rest        []string
}

func parseShell(arguments []string) (o shellOptions) {
	o.rest = arguments
	for len(o.rest) > 0 && len(o.rest[0]) > 1 && strings.Contains("-+", o.rest[0][:1]) {
		option := o.rest[0]
		o.rest = o.rest[1:]
		if option == "--" {
			break
		}
		if strings.HasPrefix(option, "--") {
			continue // --norc and the like have no effect here
		}
		for _, letter := range option[1:] {
			switch {
			case letter == 'c':
				o.line = true
			case letter == 's':
				o.stdin = true
			case letter == 'o' && len(o.rest) > 0:
				o.set = append(o.set, option[:1]+"o", o.rest[0])
				o.rest = o.rest[1:]
			case strings.ContainsRune("aefnux", letter):
				o.set = append(o.set, option[:1]+string(letter))
			}
		}
	}
	return o
}

// parameters returns the options and $1, $2, ... for the interpreter.
func (o *shellOptions) parameters(arguments []string) []string {
	return slices.Concat(o.set, []string{"--"}, arguments)
}

func (s *supervisor) script(ctx context.Context, at procEnv, from io.Reader, name string, parameters []string) error {
	text, err := io.ReadAll(io.LimitReader(from, maxScript+1))
	switch {
	case err != nil:
		return at.refuse(statusRefused, "%s: %v", name, err)
	case len(text) > maxScript:
		return at.refuse(statusRefused, "%s: a script of more than %d bytes", name, maxScript)
	}
	return s.interpret(ctx, at, string(text), name, parameters)
}
