//go:build !linux

package confine

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Support describes the kernel's means to confine commands, which exist on Linux only.
type Support struct {
	Landlock   int
	Namespaces bool
	Filter     bool
}

// Check returns what this machine supports.
func Check() Support { return Support{} }

// Confines reports whether commands can be restricted to paths and kept off the network.
func (Support) Confines() bool { return false }

// ConfinesNetwork reports whether commands can be restricted to some hosts.
func (Support) ConfinesNetwork() bool { return false }

// Missing returns what the machine lacks and the remedy.
func (Support) Missing() string {
	return "only Linux can confine commands: run hako on Linux, in a virtual machine or a container"
}

func setNamespaces(*exec.Cmd) {}

func kill(p *os.Process) error { return p.Kill() }

func filterSelf(*childSpec) error { return nil }

func isolate(*exec.Cmd, *childSpec) error { return nil }

func limitProcesses(*childSpec) error { return nil }

func confineSelf(*childSpec, string) error { return nil }

func setCloseOnExec() error { return nil }

func unblockSignals() error { return nil }

func resetIgnoredSignals() error { return nil }

func readerGone(*os.File) bool { return false }

func passListeners(*childSpec, *os.File) error { return errLinux }

func receiveFiles(context.Context, *os.File, int) ([]*os.File, error) { return nil, errLinux }

func probe() int { return 1 }

func ids() string { return "" }

func memoryFile([]byte) (*os.File, error) { return nil, errLinux }

// socketPair returns both ends of a connection between host and child.
func socketPair(string) (ours, theirs *os.File, err error) {
	return nil, nil, errLinux
}

var errLinux = errors.New("commands run on Linux only")
