package main

import (
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"

	"github.com/hako-run/hako/host/chat"
)

// maxChatFile is the largest file that a message takes along, in bytes.
const maxChatFile = 16 << 20

// chatFiles reads the files that go along with the first message.
func (a *app) chatFiles(paths []string) ([]chat.File, error) {
	var list []chat.File
	for _, path := range paths {
		data, err := readAtMost(a.path(path), maxChatFile)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		list = append(list, chat.File{Name: filepath.Base(path), MIMEType: mime.TypeByExtension(filepath.Ext(path)),
			Data: data})
	}
	return list, nil
}

// readAtMost reads a file. It is an error if that is larger than most bytes.
func readAtMost(path string, most int64) ([]byte, error) {
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
