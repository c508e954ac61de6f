package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
	"github.com/hako-run/hako/internal/cause"
)

// pluginFolder is the first plugin folder of the configuration in force, for the console.
type pluginFolder struct{ config func() *config.Config }

// State implements console.PluginFolder.
func (f pluginFolder) State() console.PluginFolderState {
	c := f.config()
	s := console.PluginFolderState{MaxSize: c.MaxPluginSize}
	if len(c.Plugins) == 0 {
		s.Problem = install.ErrNoFolder
		return s
	}
	s.Dir = c.Plugins[0]
	s.Problem = checkWritable(s.Dir)
	return s
}

// checkWritable explains why files cannot be put into a folder. It tries, because rights alone are not conclusive: the
// file system may be read-only.
func checkWritable(dir string) error {
	file, err := os.CreateTemp(dir, ".hako-*.tmp")
	if err == nil {
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
	// The name of the temporary file says nothing.
	return fmt.Errorf("hako cannot write to the plugin folder %s: %w", dir, cause.WithoutPath(err))
}

// Fetch implements console.PluginFolder.
func (f pluginFolder) Fetch(ctx context.Context, from *url.URL) ([]byte, error) {
	p, err := pluginfile.Download(ctx, f.config(), from.String(), true)
	if err != nil {
		return nil, err
	}
	return p.Wasm, nil
}

// Read implements console.PluginFolder.
func (f pluginFolder) Read(wasm []byte, from, digest string) (*console.Addition, error) {
	folder, err := install.Open(f.config())
	if err != nil {
		return nil, err
	}
	download := &install.Download{Wasm: wasm, Origin: lock.Entry{From: cmp.Or(from, lock.FromFile)}}
	p, err := folder.Read(download, digest)
	if err != nil {
		return nil, err
	}
	addition := newAddition(p)
	addition.From = from
	return addition, nil
}

// Signer implements console.PluginFolder.
func (f pluginFolder) Signer(p *host.Status) (signature.Signer, bool, error) {
	signers, err := inspect.LoadSigners(f.config())
	if err != nil {
		return signature.Signer{}, false, err
	}
	signer, ok := signers.Of(p)
	return signer, ok, nil
}

// Origin implements console.Installed.
func (f pluginFolder) Origin(p *host.Status) (from, previous string, ok bool, err error) {
	folder, err := install.Open(f.config())
	if errors.Is(err, install.ErrNoFolder) {
		return "", "", false, nil
	}
	if err != nil {
		return "", "", false, err
	}
	entry, ok, err := folder.Origin(p.Path, p.Name, p.Digest)
	if entry.Previous != nil {
		previous = entry.Previous.Version
	}
	if entry.From == lock.FromFile {
		entry.From = ""
	}
	return entry.From, previous, ok, err
}

// Newer implements console.Installed.
func (f pluginFolder) Newer(ctx context.Context, name string) (*console.Addition, error) {
	return f.version(func(folder *install.Folder) (*install.Addition, error) { return folder.Newest(ctx, name) })
}

// Previous implements console.Installed.
func (f pluginFolder) Previous(ctx context.Context, name string) (*console.Addition, error) {
	return f.version(func(folder *install.Folder) (*install.Addition, error) { return folder.Previous(ctx, name) })
}

func (f pluginFolder) version(fetch func(*install.Folder) (*install.Addition, error)) (*console.Addition, error) {
	folder, err := install.Open(f.config())
	if err != nil {
		return nil, err
	}
	folder.UsePublic()
	p, err := fetch(folder)
	if err != nil || p == nil {
		return nil, err
	}
	return newAddition(p), nil
}

// Remove implements console.Installed.
func (f pluginFolder) Remove(ctx context.Context, name string) (left []string, err error) {
	folder, err := install.Open(f.config())
	if err != nil {
		return nil, err
	}
	r, err := folder.Remove(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return r.Left, nil
}
