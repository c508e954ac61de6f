package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/wholefile"
)

// copies keeps a copy of every plugin in service, by the digest of its bytes: the file in the folder may be replaced at
// any time, also while an update waits for consent or hako is not running. Without a directory it keeps them in
// memory.
type copies struct {
	dir string
	// readOnly leaves the directory unchanged. New copies are kept in memory.
	readOnly bool

	mu     sync.Mutex
	memory map[string][]byte
}

// copyRetention is how long an unused copy is kept.
const copyRetention = 30 * 24 * time.Hour

// save stores a copy of the plugin with this digest.
func (s *copies) save(digest string, wasm []byte) error {
	if s.touch(digest) {
		return nil
	}
	if s.dir == "" || s.readOnly {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.memory == nil {
			s.memory = map[string][]byte{}
		}
		s.memory[digest] = wasm
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("keep a copy of the plugin: %w", err)
	}
	return wholefile.Write(s.path(digest), wasm)
}

// touch reports whether there is a copy on disk, and marks it as used. A read-only store only reports.
func (s *copies) touch(digest string) bool {
	if s.dir == "" {
		return false
	}
	if s.readOnly {
		_, err := os.Stat(s.path(digest))
		return err == nil
	}
	now := time.Now()
	return os.Chtimes(s.path(digest), now, now) == nil
}

// open returns the plugin with this digest. It fails with fs.ErrNotExist if there is no intact copy.
func (s *copies) open(digest string) ([]byte, error) {
	s.mu.Lock()
	wasm, ok := s.memory[digest]
	s.mu.Unlock()
	if ok {
		return wasm, nil
	}
	if s.dir == "" {
		return nil, fs.ErrNotExist
	}
	path := s.path(digest)
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the copy of the plugin: %w", err)
	}
	if found := sha256.Sum256(wasm); digest != digestPrefix+hex.EncodeToString(found[:]) {
		err = fmt.Errorf("%s has been changed: %w", path, fs.ErrNotExist)
		if !s.readOnly {
			err = errors.Join(err, os.Remove(path))
		}
		return nil, err
	}
	return wasm, nil
}

// digestPrefix is the prefix of a digest of package manifest.
const digestPrefix = "sha256:"

func (s *copies) path(digest string) string {
	return filepath.Join(s.dir, strings.TrimPrefix(digest, digestPrefix)+".wasm")
}

// prune removes copies that were not used for copyRetention.
func (s *copies) prune() error {
	if s.dir == "" || s.readOnly {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr == nil && (strings.HasSuffix(entry.Name(), ".wasm") ||
			strings.HasSuffix(entry.Name(), listingSuffix)) &&
			time.Since(info.ModTime()) > copyRetention {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, entry.Name())))
		}
	}
	return err
}
