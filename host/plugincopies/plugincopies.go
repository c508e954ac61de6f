// Package plugincopies stores copies of plugin files in a directory of the host's cache, by the digest of their bytes:
// of the versions in service, and of those that were replaced. Dir.Open checks the digest. The host removes copies that
// were not used for 30 days.
package plugincopies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/wholefile"
)

// Dir is a directory with copies.
type Dir struct {
	// Path is created by the first Save.
	Path string
	// ReadOnly leaves the directory unchanged.
	ReadOnly bool
}

// In returns the directory in a cache directory.
func In(cache string) Dir { return Dir{Path: filepath.Join(cache, "plugins")} }

// digestPrefix is the prefix of a digest of package wasmfile.
const digestPrefix = "sha256:"

// Digest returns the digest of a file's bytes, "sha256:" and 64 hexadecimal digits.
func Digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// File returns the path of the copy with a digest, which must be valid.
func (d Dir) File(digest string) string {
	return filepath.Join(d.Path, strings.TrimPrefix(digest, digestPrefix)+".wasm")
}

// Save stores a copy of the plugin with this digest, unless there is one.
func (d Dir) Save(digest string, wasm []byte) error {
	if d.Touch(digest) {
		return nil
	}
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return fmt.Errorf("keep a copy of the plugin: %w", err)
	}
	return wholefile.Write(d.File(digest), wasm)
}

// Touch reports whether there is a copy, and marks it as used. With ReadOnly it only reports.
func (d Dir) Touch(digest string) bool {
	if d.ReadOnly {
		_, err := os.Stat(d.File(digest))
		return err == nil
	}
	now := time.Now()
	return os.Chtimes(d.File(digest), now, now) == nil
}

// Open returns the plugin with this digest. It fails with fs.ErrNotExist if there is no intact copy, and removes a copy
// that is not intact.
func (d Dir) Open(digest string) ([]byte, error) {
	path := d.File(digest)
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the copy of the plugin: %w", err)
	}
	if digest != Digest(wasm) {
		err = fmt.Errorf("%s has been changed: %w", path, fs.ErrNotExist)
		if !d.ReadOnly {
			err = errors.Join(err, os.Remove(path))
		}
		return nil, err
	}
	return wasm, nil
}
