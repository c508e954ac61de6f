//go:build !linux

package confine

import (
	"context"
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

// ConfinesNetwork reports whether a command can be held to some hosts.
func (Support) ConfinesNetwork() bool { return false }

// Missing says what the machine lacks, and what to do.
func (Support) Missing() string {
	return "only Linux has what it takes: run hako there, in a virtual machine or a container"
}

func separate(*exec.Cmd) {}

func kill(p *os.Process) error { return p.Kill() }

func filterSelf(*order) error { return nil }

func isolate(*exec.Cmd, *order) error { return nil }

func limitProcesses(*order) error { return nil }

func confineSelf(*order, string) error { return nil }

func keepFilesFromPrograms() error { return nil }

func passListeners(*order, *os.File) error { return errLinux }

func receiveFiles(context.Context, *os.File, int) ([]*os.File, error) { return nil, errLinux }

func probe() int { return 1 }

func ids() string { return "" }

func memoryFile([]byte) (*os.File, error) { return nil, errLinux }

// socketPair is a connection between host and child.
func socketPair(string) (ours, theirs *os.File, err error) {
	return nil, nil, errLinux
}

var errLinux = errors.New("commands run on Linux only")
