package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// ErrNoConsent means that a plugin has no consent.
var ErrNoConsent = errors.New("no consent is recorded")

// File is a consent file: sorted YAML with one Consent for each plugin. It holds the state of the last read or write;
// Refresh reads it again to see changes by other processes. It is safe for concurrent use.
type File struct {
	document document
	dir      string // base of relative folders

	// content is the content that was last read or written. The zero File has none.
	content atomic.Pointer[Content]
}

// Content is a snapshot of a File. It is immutable.
type Content struct {
	text     []byte
	consents map[string]Consent
}

// Changed returns the names of the plugins whose consents differ between before, which may be nil, and s.
func (c *Content) Changed(before *Content) []string {
	switch {
	case c == before:
		return nil
	case before == nil:
		before = new(Content)
	}
	var names []string
	for name, now := range c.consents {
		if old, ok := before.consents[name]; !ok || !reflect.DeepEqual(old, now) {
			names = append(names, name)
		}
	}
	for name := range before.consents {
		if _, ok := c.consents[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// Load reads the consent file at path. A missing file counts as empty. The error wraps a *manifest.Error if the file is
// invalid: unknown or repeated keys, wrong types, or an inconsistent consent.
func Load(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("consent file: %w", err)
	}
	return open(context.Background(), path, fileDocument(path))
}

func open(ctx context.Context, path string, d document) (*File, error) {
	f := &File{document: d, dir: filepath.Dir(path)}
	if err := f.Refresh(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// Refresh reads the file again. It has the errors of Load, after which f is unchanged.
func (f *File) Refresh(ctx context.Context) error {
	text, err := f.document.read(ctx)
	if err != nil {
		return err
	}
	if now := f.Content(); now.text != nil && bytes.Equal(text, now.text) {
		return nil
	}
	consents, err := parseAll(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.document, err)
	}
	f.content.Store(&Content{text, consents})
	return nil
}

// Content returns the content as it was last read or written.
func (f *File) Content() *Content {
	if now := f.content.Load(); now != nil {
		return now
	}
	return new(Content)
}

// parseAll is parse for a text that may be empty.
func parseAll(text []byte) (map[string]Consent, error) {
	if text == nil {
		return map[string]Consent{}, nil
	}
	return parse(text)
}

// String returns the name of the file or the store.
func (f *File) String() string {
	if d, ok := f.document.(fileDocument); ok {
		return string(d)
	}
	return f.document.String()
}

// Approve records the consent c in place of the plugin's earlier one. A zero c.ApprovedAt becomes the current time.
//
// It reads the file again under a lock between processes (path + ".lock"), so that concurrent approvals are all kept,
// and replaces the file atomically. It fails if c is incomplete (for example without a folder for a mount), if the file
// cannot be read or written, or if ctx ends before the lock is free.
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

// Revoke revokes the consent for all versions of a plugin; by names the person. The entry and its mappings stay, so
// that updates of the plugin are revoked too. A revoked consent stays as it is. The error matches ErrNoConsent if there
// is no consent; for others see Approve.
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

// Decline records that a plugin is not wanted: no version of it is asked about again, until it is approved. m is its
// manifest and digest the digest of its file; by names the person. An earlier consent is revoked. For errors see Approve.
func (f *File) Decline(ctx context.Context, m *manifest.Manifest, digest, by string) error {
	c := Consent{Name: m.Name, Version: m.Version, Digest: digest, Asked: sortedPermissions(m.Permissions),
		RevokedAt: time.Now().UTC().Truncate(time.Second), RevokedBy: by}
	if err := c.check(); err != nil {
		return err
	}
	err := f.Revoke(ctx, m.Name, by)
	if !errors.Is(err, ErrNoConsent) {
		return err
	}
	return f.update(ctx, func(consents map[string]Consent) error {
		if _, meanwhile := consents[m.Name]; !meanwhile {
			consents[m.Name] = c
		}
		return nil
	})
}

// Remove removes the consent for a plugin, with its mappings. Its file waits for consent as one that was never seen.
// The error matches ErrNoConsent if there is no consent; for others see Approve.
func (f *File) Remove(ctx context.Context, name string) error {
	return f.update(ctx, func(consents map[string]Consent) error {
		if _, ok := consents[name]; !ok {
			return fmt.Errorf("%w: %s", ErrNoConsent, strictyaml.Unknown("plugin", name, sortedKeys(consents)))
		}
		delete(consents, name)
		return nil
	})
}

// update applies change to the current consents.
func (f *File) update(ctx context.Context, change func(map[string]Consent) error) error {
	var text []byte
	var consents map[string]Consent
	err := f.document.change(ctx, func(old []byte) (_ []byte, err error) {
		if now := f.Content(); bytes.Equal(old, now.text) {
			consents = maps.Clone(now.consents)
		} else if consents, err = parseAll(old); err != nil {
			return nil, fmt.Errorf("%s: %w", f.document, err)
		}
		if consents == nil {
			consents = map[string]Consent{}
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
	f.content.Store(&Content{text, consents})
	return nil
}

// Consents returns all consents sorted by plugin, including revoked ones.
func (f *File) Consents() []Consent {
	consents := f.Content().consents
	var list []Consent
	for _, name := range sortedKeys(consents) {
		list = append(list, f.inDir(consents[name]))
	}
	return list
}

// InForce returns the consent in force for any version of the plugin.
func (f *File) InForce(name string) (Consent, bool) {
	c, ok := f.lookup(name)
	return c, ok && c.RevokedAt.IsZero()
}

func (f *File) lookup(name string) (Consent, bool) {
	c, ok := f.Content().consents[name]
	return f.inDir(c), ok
}

func (f *File) inDir(c Consent) Consent {
	c.dir = f.dir
	return c
}
