package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hako-run/hako/host/broker/exec/judge"
)

// place is where and how a program starts.
type place struct {
	dir            string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Exit statuses of a shell: for a command that may not run, and for one that is not there.
const (
	statusRefused  = 126
	statusNotFound = 127
)

// statusError is the end of a program that did not succeed.
type statusError struct{ exit Exit }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.exit.Code) }

// refuse ends a command before it starts, and says why where its own errors go.
func (p *place) refuse(status int, format string, args ...any) error {
	fmt.Fprintf(p.stderr, "hako: "+format+"\n", args...)
	return &statusError{Exit{Code: status}}
}

// exec judges a program with its final arguments and runs it. Shells are interpreted.
func (w *watcher) exec(ctx context.Context, at place, argv []string) error {
	if judge.IsShell(filepath.Base(argv[0])) {
		return w.shell(ctx, at, argv)
	}
	path, err := w.spec.Program(at.dir, argv[0])
	if err != nil {
		return at.refuse(statusNotFound, "%v", err)
	}
	if err := w.permit(at.dir, path, argv); err != nil {
		return at.refuse(statusRefused, "%v", err)
	}
	if script, ok := shellScript(path); ok {
		defer script.Close()
		return w.script(ctx, at, script, argv[0], append([]string{"--"}, argv[1:]...))
	}
	command := exec.CommandContext(ctx, path)
	command.Args = argv
	command.Dir, command.Env = at.dir, at.env
	command.Stdin, command.Stdout, command.Stderr = at.stdin, at.stdout, at.stderr
	return ended(at, argv[0], command.Run())
}

// shellScript opens a program that is a script for a shell.
func shellScript(path string) (*os.File, bool) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	head := make([]byte, 128)
	n, _ := file.ReadAt(head, 0)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if strings.HasPrefix(line, "#!") && len(words) > 0 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	if strings.HasPrefix(line, "#!") && len(words) > 0 && judge.IsShell(filepath.Base(words[0])) {
		return file, true
	}
	_ = file.Close()
	return nil, false
}

func ended(at place, name string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return at.refuse(statusRefused, "%s: %v", name, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &statusError{Exit{Code: -1, Signal: status.Signal().String()}}
	}
	return &statusError{Exit{Code: exit.ExitCode()}}
}

// Program returns the file that a program's name or path means, if it is granted. A relative path is relative to dir.
// The error says that it is not.
func (s *Spec) Program(dir, name string) (string, error) {
	if !strings.Contains(name, "/") {
		for _, program := range s.Programs {
			if program.Name == name {
				return program.Path, nil
			}
		}
		return s.beneath(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("%s is not there, or not granted", name)
	}
	for _, program := range s.Programs {
		if program.Path == real || program.Name == "*" && filepath.Dir(real) == program.Path {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s is not granted", name)
}

// beneath looks for a program in the directories of which all programs are granted.
func (s *Spec) beneath(name string) (string, error) {
	for _, program := range s.Programs {
		if program.Name != "*" || name == "" {
			continue
		}
		if path, err := filepath.EvalSymlinks(filepath.Join(program.Path, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not granted, or not there", name)
}

// permit holds a program, and what it would start, against the rules.
func (w *watcher) permit(dir, path string, argv []string) error {
	verdict, err := w.judge.Argv(argv)
	if err != nil {
		return err
	}
	commands := verdict.Commands[1:]
	if verdict, err = w.byFile(verdict, path, argv); err != nil {
		return err
	}
	for _, command := range commands {
		path, err := w.spec.Program(dir, command.Argv[0])
		switch {
		case err == nil:
			if verdict, err = w.byFile(verdict, path, command.Argv); err != nil {
				return err
			}
		case !judge.IsShell(command.Name()):
			return fmt.Errorf("%s would start %s: %w", argv[0], command.Name(), err)
		}
	}
	if err := w.settle(verdict, argv); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range verdict.Unjudged {
		if !slices.Contains(w.unjudged, name) && len(w.unjudged) < maxUnjudged {
			w.unjudged = append(w.unjudged, name)
		}
	}
	return nil
}

// maxUnjudged bounds the programs that an Exit names.
const maxUnjudged = 32

// byFile judges a program also by the name of its file, which a link may have given another one, and returns the
// stricter verdict.
func (w *watcher) byFile(verdict *judge.Verdict, path string, argv []string) (*judge.Verdict, error) {
	named := filepath.Base(path)
	if named == filepath.Base(argv[0]) || judge.IsMultiCall(named) {
		return verdict, nil
	}
	other, err := w.judge.Argv(append([]string{named}, argv[1:]...))
	switch {
	case err != nil:
		return nil, err
	case other.Rule == judge.RuleUnknown && !strings.Contains(argv[0], "/"):
		return verdict, nil // the system's own link: which -> which.debianutils
	case other.Action > verdict.Action:
		return other, nil
	}
	return verdict, nil
}

func (w *watcher) settle(verdict *judge.Verdict, argv []string) error {
	text := (&judge.Command{Argv: argv}).String()
	switch {
	case verdict.Action == judge.Allow:
		return nil
	case verdict.Action == judge.Deny:
		return fmt.Errorf("%s: denied by the rule %q: %s", text, verdict.Rule, verdict.Reason)
	case slices.ContainsFunc(w.spec.Approved, func(approved []string) bool { return slices.Equal(approved, argv) }):
		return nil
	}
	return w.ask(Question{Command: text, Rule: verdict.Rule, Reason: verdict.Reason})
}

// Named are the names of the programs that were granted by name, and of their files.
func (s *Spec) Named() (names []string) {
	for _, program := range s.Programs {
		if program.Name != "*" {
			names = append(names, program.Name, filepath.Base(program.Path))
		}
	}
	return names
}

func split(variable string) (name, value string) {
	name, value, _ = strings.Cut(variable, "=")
	return name, value
}
