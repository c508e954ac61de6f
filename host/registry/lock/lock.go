// Package lock reads and writes the lock file of a plugin folder, hako.lock.yaml: which plugins were installed, from
// where, and with which digests. It is made to be kept in git: the same plugins give the same bytes.
//
// A lock file may come from anywhere. Load checks that its names can be file names and that its digests and addresses
// are well-formed; nothing in it grants a plugin anything.
package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/hako-run/hako/internal/wholefile"
)

// FileName is the name of the lock file, which is in the directory of the consents.
const FileName = "hako.lock.yaml"

// FromFile is the From of plugins that were added from a file of some machine. They cannot be downloaded again.
const FromFile = "file"

// Entry is one version of a plugin.
type Entry struct {
	// From is the address that the plugin was installed from, or FromFile: an OCI reference ("oci://…") or an https URL
	// without its query.
	From string
	// Digest is the digest of what From answered: of the OCI manifest, or of the file. Wasm is that of the .wasm file
	// in the folder. Both have the form of wasmfile.Module's.
	Digest, Wasm string
	// Version is the one in the plugin's manifest.
	Version string
	// Signer is the plugin's signer. Nil means that it was not signed.
	Signer *Signer
}

// Signer is the identity that a signature was verified for: an OpenID Connect issuer and subject, or a key.
type Signer struct{ Issuer, Subject, Key string }

// Plugin is the entry of a plugin in a lock file.
type Plugin struct {
	Entry
	// Previous is the version that was in the folder before. Nil if there was none.
	Previous *Entry
	// Note is the operator's comment.
	Note string
}

// Plugins are the entries of a lock file, by the names of the plugins.
type Plugins map[string]Plugin

// Set makes e the installed version of a plugin. The version that it replaces becomes the previous one.
func (p Plugins) Set(name string, e Entry) {
	now := p[name]
	if now.Wasm != "" && now.Wasm != e.Wasm {
		before := now.Entry
		now.Previous = &before
	}
	now.Entry = e
	p[name] = now
}

// Load reads the lock file at path. A missing file has no entries.
func Load(path string) (Plugins, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Plugins{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return read(path, text)
}

func read(path string, text []byte) (Plugins, error) {
	plugins, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	return plugins, nil
}

// Update applies change to the entries of the lock file at path, under a lock between processes, so that concurrent
// changes are all kept. The file is replaced in one step, and only if the entries have changed.
func Update(ctx context.Context, path string, change func(Plugins) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	locked := false
	err := wholefile.Update(ctx, path, 0o644, func(old []byte) ([]byte, error) {
		locked = true
		plugins := Plugins{}
		if old != nil {
			var err error
			if plugins, err = read(path, old); err != nil {
				return nil, err
			}
		}
		before := maps.Clone(plugins)
		if err := change(plugins); err != nil {
			return nil, err
		}
		if reflect.DeepEqual(plugins, before) {
			return old, nil
		}
		text, err := format(plugins)
		if err == nil {
			_, err = parse(text) // what Load would refuse is not written
		}
		if err != nil {
			return nil, fmt.Errorf("the new lock file would be invalid: %w", err)
		}
		return text, nil
	})
	if err != nil && !locked && ctx.Err() == nil {
		err = fmt.Errorf("the lock file cannot be written: %w: set lock in hako.yaml to a path that hako may write",
			err)
	}
	return err
}
