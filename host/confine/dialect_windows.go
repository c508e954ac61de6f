package confine

import (
	"errors"
	"os"
	"syscall"
)

func duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func signalNumber(name string) syscall.Signal {
	if name == "SIGTERM" || name == "SIGKILL" {
		return syscall.SIGKILL
	}
	return -1
}
