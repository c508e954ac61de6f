package pluginfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// Addition is a plugin that is to be put into a folder. NewAddition makes one.
type Addition struct {
	Manifest *manifest.Manifest
	Digest   string
	// Path is its file in the folder, with the name in the manifest.
	Path string

	wasm []byte
}

// NewAddition reads a plugin for folder; nothing of it runs. It fails if the file is no plugin with a manifest, imports
// what its permissions do not cover, or does not have the digest, unless that is empty.
func NewAddition(wasm []byte, digest, folder string) (*Addition, error) {
	m, module, err := parse(wasm)
	if err != nil {
		return nil, err
	}
	if digest != "" && !strings.EqualFold(digest, module.Digest) {
		return nil, fmt.Errorf("it has the digest %s, and not %s: it is not the file that was meant, and nothing was put "+
			"into the folder", module.Digest, digest)
	}
	if err := module.CheckImports(m.Permissions); err != nil {
		return nil, err
	}
	return &Addition{m, module.Digest, filepath.Join(folder, m.Name+".wasm"), wasm}, nil
}

// Exists reports whether there is a file at Path, which Place would replace.
func (a *Addition) Exists() bool {
	_, err := os.Lstat(a.Path)
	return err == nil
}

// Place writes the file. Hosts that watch the folder find the plugin, which waits for consent.
func (a *Addition) Place() error { return Place(a.Path, a.wasm) }
