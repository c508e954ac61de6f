package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// WriteNew writes a file that must not exist, readable for everybody.
func WriteNew(path string, data []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: name another file, or remove it", path)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(data)
	return err
}
