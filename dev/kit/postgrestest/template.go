//go:build unix

package postgrestest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// templateDir returns the directory of the data directory that initdb created once for all tests of the user. It may
// not exist yet. Another initdb has another directory.
func templateDir(initdb string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	info, err := os.Stat(initdb)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", initdb, info.Size(), info.ModTime().UnixNano()))
	return filepath.Join(base, "hako-test", "postgres-"+hex.EncodeToString(key[:8])), nil
}

// storeTemplate copies a data directory to the template's directory. Several processes may do so at the same time.
func storeTemplate(data, template string) error {
	if err := os.MkdirAll(filepath.Dir(template), 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(template), "postgres-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, os.DirFS(data)); err != nil {
		return err
	}
	if err := os.Rename(temp, template); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// copyTemplate creates the data directory as a copy of the template.
func (s *Server) copyTemplate(template string) error {
	if err := os.CopyFS(s.data(), os.DirFS(template)); err != nil {
		return err
	}
	if err := os.Chmod(s.data(), 0o700); err != nil { // PostgreSQL requires it
		return err
	}
	return filepath.WalkDir(s.data(), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, giveAway(path))
	})
}

// copyFiles returns the option of CREATE DATABASE that copies the files of the template database. The default since
// PostgreSQL 15, which writes each of their pages to the write-ahead log, takes five times as long.
func (s *Server) copyFiles() string {
	text, err := os.ReadFile(filepath.Join(s.data(), "PG_VERSION"))
	if err != nil {
		return ""
	}
	if version, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || version < 15 {
		return ""
	}
	return " STRATEGY FILE_COPY"
}
