package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/strictyaml"
)

// ErrNoConsent is the error for a plugin that has no consent.
var ErrNoConsent = errors.New("no consent is recorded")

// File is a consent file: YAML, sorted, one Consent for each plugin. What it holds is what was read last; Load it anew to see what
// other processes changed. It is safe for concurrent use.
type File struct {
	document document
	dir      string // where relative folders begin

	mu       sync.Mutex         // guards what follows
	text     []byte             // as it was read or written
	consents map[string]Consent // the values are not changed
}

// Load reads the consent file at path. A file that does not exist is empty. The error is a *manifest.Error, wrapped, for a file that
// cannot be understood: unknown and repeated keys, wrong types, a consent that contradicts itself.
func Load(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("consent file: %w", err)
	}
	return open(context.Background(), path, fileDocument(path))
}

func open(ctx context.Context, path string, d document) (*File, error) {
	text, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	consents, err := parseAll(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return &File{document: d, dir: filepath.Dir(path), text: text, consents: consents}, nil
}

// parseAll is parse, also of nothing.
func parseAll(text []byte) (map[string]Consent, error) {
	if text == nil {
		return map[string]Consent{}, nil
	}
	return parse(text)
}

// String names the file, or the store that the consents are in.
func (f *File) String() string {
	if d, ok := f.document.(fileDocument); ok {
		return string(d)
	}
	return f.document.String()
}

// Same reports whether both hold the same text.
func (f *File) Same(other *File) bool {
	f.mu.Lock()
	text := f.text
	f.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	return bytes.Equal(text, other.text)
}

// Approve records the consent c and replaces the one for that plugin before. A zero c.ApprovedAt becomes the present.
//
// It reads the file again under a lock that all processes observe (path + ".lock"), so that consents given at the same time are all
// kept, and replaces the file in one step. It is an error if c is not complete (a mount that is asked for but not mapped), if the
// file cannot be read or written, or if ctx ends before the lock is free.
func (f *File) Approve(ctx context.Context, c Consent) error {
	if c.ApprovedAt.IsZero() {
		c.ApprovedAt = time.Now()
	}
	c.ApprovedAt = c.ApprovedAt.UTC().Truncate(time.Second)
	if err := c.check(); err != nil {
		return err
	}
	c.Asked = sortedPermissions(c.Asked)
	return f.update(ctx, func(consents map[string]Consent) error {
		consents[c.Name] = c
		return nil
	})
}

// Revoke takes the consent for a plugin back, whichever its version; by says who did. The entry stays, with its mappings, so that
// updates of the plugin remain revoked too. A consent that is revoked already stays as it is. The error matches ErrNoConsent if there
// is none; for others see Approve.
func (f *File) Revoke(ctx context.Context, name, by string) error {
	return f.update(ctx, func(consents map[string]Consent) error {
		c, ok := consents[name]
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoConsent, strictyaml.Unknown("plugin", name, sortedKeys(consents)))
		}
		if c.RevokedAt.IsZero() {
			c.RevokedAt, c.RevokedBy = time.Now().UTC().Truncate(time.Second), by
			consents[name] = c
		}
		return nil
	})
}

// update changes what is there now.
func (f *File) update(ctx context.Context, change func(map[string]Consent) error) error {
	var text []byte
	var consents map[string]Consent
	err := f.document.change(ctx, func(old []byte) (_ []byte, err error) {
		if consents, err = parseAll(old); err != nil {
			return nil, fmt.Errorf("%s: %w", f.document, err)
		}
		if err := change(consents); err != nil {
			return nil, err
		}
		if text, err = format(consents); err != nil {
			return nil, fmt.Errorf("consent file: %w", err)
		}
		return text, nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.consents = text, consents
	return nil
}

// replaceFile replaces the file at path, or the one that a symbolic link there leads to, in one step: after a crash there is the old
// or the new content.
func replaceFile(path string, data []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir last. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Consents returns all consents, sorted by plugin, revoked ones included.
func (f *File) Consents() []Consent {
	f.mu.Lock()
	consents := maps.Clone(f.consents)
	f.mu.Unlock()
	var list []Consent
	for _, name := range sortedKeys(consents) {
		list = append(list, f.inDir(consents[name]))
	}
	return list
}

// Lookup returns the consent in force for the plugin of that name and digest. What it asks for has still to be compared; Decide does.
func (f *File) Lookup(name, digest string) (Consent, bool) {
	c, ok := f.lookup(name)
	if !ok || c.Digest != digest || !c.RevokedAt.IsZero() {
		return Consent{}, false
	}
	return c, true
}

func (f *File) lookup(name string) (Consent, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.consents[name]
	return f.inDir(c), ok
}

func (f *File) inDir(c Consent) Consent {
	c.dir = f.dir
	return c
}
