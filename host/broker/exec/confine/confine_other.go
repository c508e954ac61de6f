//go:build !linux

package confine

import (
	"errors"
	"os"
	"os/exec"
)

// Support is what this machine's kernel can do to hold a command. Elsewhere than on Linux it is nothing.
type Support struct {
	Landlock   int
	Namespaces bool
	Filter     bool
}

// Check finds out what this machine can do.
func Check() Support { return Support{} }

// Confines reports whether a command can be held to its paths and to no network.
func (Support) Confines() bool { return false }

// ConfinesPorts reports whether it can be held to TCP ports.
func (Support) ConfinesPorts() bool { return false }

// Missing says what the machine lacks, and what to do.
func (Support) Missing() string {
	return "only Linux has what it takes: run hako there, in a virtual machine or a container"
}

func separate(*exec.Cmd, *Spec) {}

func kill(p *os.Process) error { return p.Kill() }

func filterSelf(*order) error { return nil }

func isolate(*exec.Cmd, *order) {}

func limitProcesses(*order) error { return nil }

func confineSelf(*order, string) error { return nil }

func keepFilesFromPrograms() error { return nil }

func probe() int { return 1 }

func memoryFile([]byte) (*os.File, error) { return nil, errLinux }

// controlPair is a connection between host and child.
func controlPair() (ours, theirs *os.File, err error) {
	return nil, nil, errLinux
}

var errLinux = errors.New("commands run on Linux only")
