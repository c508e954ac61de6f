package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/pluginfile"
)

// pluginFolder is the first plugin folder of the configuration in force, for the console.
type pluginFolder struct{ config func() *config.Config }

var errNoPluginFolder = errors.New("there is no plugin folder: name one with plugins in " + config.FileName)

// State implements console.PluginFolder.
func (f pluginFolder) State() console.PluginFolderState {
	c := f.config()
	s := console.PluginFolderState{MaxSize: c.MaxPluginSize}
	if len(c.Plugins) == 0 {
		s.Problem = errNoPluginFolder
		return s
	}
	s.Dir = c.Plugins[0]
	s.Problem = checkWritable(s.Dir)
	return s
}

// checkWritable says why files cannot be put into a folder. It tries, because rights alone do not tell: the file system
// may be read-only.
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
	c := f.config()
	return pluginfile.FetchPublic(ctx, from, c.ProxyURL(), c.MaxPluginSize)
}

// Read implements console.PluginFolder.
func (f pluginFolder) Read(wasm []byte, digest string) (*console.Addition, error) {
	c := f.config()
	if len(c.Plugins) == 0 {
		return nil, errNoPluginFolder
	}
	p, err := pluginfile.NewAddition(wasm, digest, c.Plugins[0])
	if err != nil {
		return nil, err
	}
	return &console.Addition{Manifest: p.Manifest, Digest: p.Digest, Path: p.Path, Exists: p.Exists(), Place: p.Place}, nil
}
