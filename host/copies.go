package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/plugincopies"
)

// copies keeps a copy of every plugin in service, by the digest of its bytes: the file in the folder may be replaced at
// any time, also while an update waits for consent or hako is not running. Without a directory it keeps them in
// memory, and with a read-only one it keeps new ones there.
type copies struct {
	dir plugincopies.Dir

	mu     sync.Mutex
	memory map[string][]byte
}

// copyRetention is the time for which an unused copy is kept.
const copyRetention = 30 * 24 * time.Hour

// save stores a copy of the plugin with this digest.
func (s *copies) save(digest string, wasm []byte) error {
	if s.touch(digest) {
		return nil
	}
	if s.dir.Path == "" || s.dir.ReadOnly {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.memory == nil {
			s.memory = map[string][]byte{}
		}
		s.memory[digest] = wasm
		return nil
	}
	return s.dir.Save(digest, wasm)
}

// touch reports whether there is a copy on disk, and marks it as used. A read-only store only reports.
func (s *copies) touch(digest string) bool { return s.dir.Path != "" && s.dir.Touch(digest) }

// open returns the plugin with this digest. It fails with fs.ErrNotExist if there is no intact copy.
func (s *copies) open(digest string) ([]byte, error) {
	s.mu.Lock()
	wasm, ok := s.memory[digest]
	s.mu.Unlock()
	if ok {
		return wasm, nil
	}
	if s.dir.Path == "" {
		return nil, fs.ErrNotExist
	}
	return s.dir.Open(digest)
}

// prune removes copies that were not used for copyRetention.
func (s *copies) prune() error {
	if s.dir.Path == "" || s.dir.ReadOnly {
		return nil
	}
	entries, err := os.ReadDir(s.dir.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr == nil && (strings.HasSuffix(entry.Name(), ".wasm") ||
			strings.HasSuffix(entry.Name(), listingSuffix)) &&
			time.Since(info.ModTime()) > copyRetention {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir.Path, entry.Name())))
		}
	}
	return err
}
