package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) devCommand() *cobra.Command {
	group := groupCommand("dev", "Commands for authors of tools", a.devPluginCommand())
	for _, name := range []string{"fakes", "chat", "slack", "agent"} {
		group.AddCommand(a.elsewhereCommand(name))
	}
	return group
}

// devProgram has the fakes of the vendors and the demonstrations on them.
const devProgram = "hako-dev"

// elsewhereCommand runs a command of hako-dev, where people look for it under "hako dev". It is not in the help: hako is
// often installed without hako-dev.
func (a *app) elsewhereCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "Runs " + devProgram + " " + name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := findDevProgram()
			if err != nil {
				return &exitError{exitUsage, fmt.Errorf("%s is a command of the program %s, which is neither beside hako nor in PATH: "+
					"build it with go build ./cmd/%[2]s, and run %[2]s %[1]s", name, devProgram)}
			}
			child := exec.CommandContext(cmd.Context(), program, append([]string{name}, args...)...)
			child.Stdin, child.Stdout, child.Stderr = a.stdin, a.stdout, a.stderr
			child.WaitDelay = devGrace
			child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
			err = child.Run()
			var ended *exec.ExitError
			if errors.As(err, &ended) && ended.Exited() { // it has said why
				return &exitError{ended.ExitCode(), nil}
			}
			return err
		},
	}
}

// devGrace is the time that hako-dev has to end after a signal.
const devGrace = 10 * time.Second

// findDevProgram returns the path of hako-dev: beside this program, or else in PATH.
func findDevProgram() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), devProgram)); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath(devProgram)
}
