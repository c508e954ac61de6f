package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// stopTime is the time that hako has to end after its context. Then it is killed.
const stopTime = 5 * time.Second

// findHako returns the path of the hako to run.
func (a *app) findHako() (string, error) {
	if a.hako != "" {
		path, err := exec.LookPath(a.hako)
		if err != nil {
			return "", fmt.Errorf("--hako: %w", err)
		}
		return path, nil
	}
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	if path, err := filepath.EvalSymlinks(own); err == nil {
		own = path
	}
	beside := filepath.Join(filepath.Dir(own), "hako")
	if runtime.GOOS == "windows" {
		beside += ".exe"
	}
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	path, err := exec.LookPath("hako")
	if err != nil {
		return "", fmt.Errorf("hako is neither %s nor in PATH: build it with \"make build\", or name it with --hako",
			beside)
	}
	return path, nil
}

// hakoCommand returns the command "hako args..." with the streams of this program. When ctx ends, it is asked to end.
func (a *app) hakoCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := a.findHako()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Stdin, command.Stdout, command.Stderr = a.stdin, a.stdout, a.stderr
	command.Env = environment(os.Environ())
	command.Cancel = func() error { return terminate(command.Process) }
	command.WaitDelay = stopTime
	return command, nil
}

// environment returns the variables for hako: without those that would replace the fakes by recordings, or the
// temporary store by the user's.
func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "MOCK_MODE" || name == "HAKO_MOCK" || name == "HAKO_STORE"
	})
}

// runHako runs "hako args..." to its end, and passes signals on to it.
func (a *app) runHako(ctx context.Context, stdin io.Reader, args ...string) error {
	command, err := a.hakoCommand(ctx, args...)
	if err != nil {
		return err
	}
	command.Stdin = stdin
	return runCommand(command, a.signals)
}

// runCommand runs a command to its end, and passes signals on to it. Its exit code is that of the error.
func runCommand(command *exec.Cmd, signals <-chan os.Signal) error {
	// Linux ends the command when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(command)
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case caught := <-signals:
			if caught != os.Interrupt {
				_ = terminate(command.Process) // an error means that it has ended
			} else if !interruptedByTerminal() {
				_ = command.Process.Signal(caught)
			}
		case err := <-ended:
			var exit *exec.ExitError
			switch {
			case !errors.As(err, &exit):
				return err
			case exit.ExitCode() < 0:
				return &exitError{code: exitInterrupted}
			}
			return &exitError{code: exit.ExitCode()}
		}
	}
}
