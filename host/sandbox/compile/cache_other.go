//go:build !linux

package compile

import (
	"errors"
	"os"
)

func mapCode(*os.File, int64, []byte) error { return errors.ErrUnsupported }
