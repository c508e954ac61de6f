package main

import (
	"fmt"
	"mime"
	"path/filepath"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/internal/wholefile"
)

// maxChatFile is the largest file that a message takes along, in bytes.
const maxChatFile = 16 << 20

// chatFiles reads the files that go along with the first message.
func (a *app) chatFiles(paths []string) ([]chat.File, error) {
	var list []chat.File
	for _, path := range paths {
		data, err := wholefile.ReadAtMost(a.path(path), maxChatFile)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		list = append(list, chat.File{Name: filepath.Base(path), MIMEType: mime.TypeByExtension(filepath.Ext(path)),
			Data: data})
	}
	return list, nil
}
