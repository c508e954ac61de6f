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

	"github.com/hako-run/hako/host/judge"
)

// procEnv is the environment in which a program starts.
type procEnv struct {
	dir            string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	track          tracker // nil: nobody is told of processes
}

// Exit statuses of a shell for a command that may not run, and for one that does not exist.
const (
	statusRefused  = 126
	statusNotFound = 127
)

// statusError reports a program that did not succeed.
type statusError struct {
	exit Exit
	// signal is the number of the signal that ended it, or 0.
	signal syscall.Signal
}

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.exit.Code) }

// refuse writes the reason of a refusal to the program's stderr and returns the exit status.
func (p *procEnv) refuse(status int, format string, args ...any) error {
	fmt.Fprintf(p.stderr, "hako: "+format+"\n", args...)
	return &statusError{exit: Exit{Code: status}}
}

// exec judges a program with its final arguments and runs it. It interprets shells itself.
func (s *supervisor) exec(ctx context.Context, at procEnv, argv []string) error {
	if judge.IsShell(filepath.Base(argv[0])) {
		return s.shell(ctx, at, argv)
	}
	path, err := s.spec.Program(at.dir, argv[0])
	if err != nil {
		return at.refuse(statusNotFound, "%v", err)
	}
	if err := s.authorize(at.dir, path, argv); err != nil {
		return at.refuse(statusRefused, "%v", err)
	}
	if script, ok := shellScript(path); ok {
		defer script.Close()
		return s.script(ctx, at, script, argv[0], append([]string{"--"}, argv[1:]...))
	}
	command := exec.CommandContext(ctx, path)
	command.Args = argv
	command.Dir, command.Env = at.dir, at.env
	command.Stdin, command.Stdout, command.Stderr = at.stdin, at.stdout, at.stderr
	err = command.Start()
	if err == nil {
		done := func() {}
		if at.track != nil {
			done = at.track(command.Process)
		}
		err = command.Wait()
		done()
	}
	return ended(at, argv[0], err)
}

// shellScript opens the program at path if it is a shell script.
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

func ended(at procEnv, name string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return at.refuse(statusRefused, "%s: %v", name, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &statusError{Exit{Code: -1, Signal: status.Signal().String()}, status.Signal()}
	}
	return &statusError{exit: Exit{Code: exit.ExitCode()}}
}

// Program returns the file of a program by its name or path, or an error if it is not granted. A relative path is
// relative to dir.
func (s *Spec) Program(dir, name string) (string, error) {
	if !strings.Contains(name, "/") {
		for _, program := range s.Programs {
			if program.Name == name {
				return program.Path, nil
			}
		}
		return s.findInDirs(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("%s does not exist, or is not granted", name)
	}
	for _, program := range s.Programs {
		if program.Path == real || program.Name == "*" && filepath.Dir(real) == program.Path {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s is not granted", name)
}

// findInDirs looks for a program in the directories whose programs are all granted.
func (s *Spec) findInDirs(name string) (string, error) {
	for _, program := range s.Programs {
		if program.Name != "*" || name == "" {
			continue
		}
		if path, err := filepath.EvalSymlinks(filepath.Join(program.Path, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not granted, or does not exist", name)
}

// authorize checks a program, and the programs that it would start, against the rules.
func (s *supervisor) authorize(dir, path string, argv []string) error {
	verdict, err := s.judge.Argv(argv)
	if err != nil {
		return err
	}
	commands := verdict.Commands[1:]
	if verdict, err = s.judgeFile(verdict, path, argv); err != nil {
		return err
	}
	for _, command := range commands {
		path, err := s.spec.Program(dir, command.Argv[0])
		switch {
		case err == nil:
			if verdict, err = s.judgeFile(verdict, path, command.Argv); err != nil {
				return err
			}
		case !judge.IsShell(command.Name()):
			return fmt.Errorf("%s would start %s: %w", argv[0], command.Name(), err)
		}
	}
	if err := s.enforce(verdict, argv); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range verdict.Unjudged {
		if !slices.Contains(s.unjudged, name) && len(s.unjudged) < maxUnjudged {
			s.unjudged = append(s.unjudged, name)
		}
	}
	return nil
}

// maxUnjudged limits the length of Exit.Unjudged.
const maxUnjudged = 32

// judgeFile judges a program also under the name of its file, which differs if it was started through a link. It
// returns the stricter verdict.
func (s *supervisor) judgeFile(verdict *judge.Verdict, path string, argv []string) (*judge.Verdict, error) {
	named := filepath.Base(path)
	if named == filepath.Base(argv[0]) || judge.IsMultiCall(named) {
		return verdict, nil
	}
	other, err := s.judge.Argv(append([]string{named}, argv[1:]...))
	switch {
	case err != nil:
		return nil, err
	case other.Rule == judge.RuleUnknown && !strings.Contains(argv[0], "/"):
		return verdict, nil // a link of the system, such as which -> which.debianutils
	case other.Action > verdict.Action:
		return other, nil
	}
	return verdict, nil
}

func (s *supervisor) enforce(verdict *judge.Verdict, argv []string) error {
	text := (&judge.Command{Argv: argv}).String()
	switch {
	case verdict.Action == judge.Allow:
		return nil
	case verdict.Action == judge.Deny:
		return fmt.Errorf("%s: denied by the rule %q: %s", text, verdict.Rule, verdict.Reason)
	case slices.ContainsFunc(s.spec.Approved, func(approved []string) bool { return slices.Equal(approved, argv) }):
		return nil
	}
	return s.ask(Question{Command: text, Rule: verdict.Rule, Reason: verdict.Reason})
}

// Named returns the names of the programs that were granted by name, and of their files.
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
