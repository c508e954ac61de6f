package wholefile

import (
	"fmt"
	"io"
	"os"
)

// ReadAtMost reads a file. A file of more than most bytes is an error.
func ReadAtMost(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d MiB", path, most>>20)
	}
	return data, err
}
