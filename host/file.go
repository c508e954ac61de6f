package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	httpbroker "github.com/hako-run/hako/host/broker/http"
	"github.com/hako-run/hako/host/manifest"
)

// source is where a plugin comes from: a file in a folder, or the program itself.
type source struct {
	path string
	wasm []byte // not nil: shipped
}

func (s source) shipped() bool { return s.wasm != nil }

// stamp changes when a plugin's file, or the manifest beside it, does.
type stamp struct {
	wasm, manifest fileStamp
}

type fileStamp struct {
	size     int64
	modified time.Time
}

func (s source) stamp() (stamp, error) {
	if s.shipped() {
		return stamp{}, nil
	}
	wasm, err := stampOf(s.path)
	if err != nil {
		return stamp{}, err
	}
	beside, err := stampOf(beside(s.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stamp{}, err
	}
	return stamp{wasm, beside}, nil
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{info.Size(), info.ModTime()}, nil
}

// beside is the path of a manifest that is not inside its plugin: NAME.yaml next to NAME.wasm.
func beside(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".yaml" }

// pluginFile is what a plugin's file holds, read without running it.
type pluginFile struct {
	// wasm is the file, with the manifest inside also where it lies beside.
	wasm       []byte
	module     *manifest.Module
	manifest   *manifest.Manifest
	recordings *httpbroker.Recordings
}

// read reads a plugin and checks everything that can be known without running it: that it is Wasm, its manifest, the ABI that it
// speaks, and that it imports only what its manifest asks for.
func (s source) read(maxSize int64) (*pluginFile, error) {
	wasm := s.wasm
	if !s.shipped() {
		var err error
		if wasm, err = manifest.ReadFile(s.path, maxSize); err != nil {
			return nil, err
		}
	}
	return parse(wasm)
}

func parse(wasm []byte) (*pluginFile, error) {
	module, err := manifest.Read(wasm)
	if err != nil {
		return nil, err
	}
	if _, err := module.ABI(); err != nil && !errors.Is(err, manifest.ErrExtism) {
		return nil, err
	}
	if module.Manifest == nil {
		return nil, errNoManifest
	}
	p := &pluginFile{wasm: wasm, module: module}
	if p.manifest, err = module.ParseManifest(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := module.CheckImports(p.manifest.Permissions); err != nil {
		return nil, err
	}
	if module.Recordings != nil {
		p.recordings, err = httpbroker.ParseRecordings(module.Recordings)
	}
	return p, err
}

var errNoManifest = errors.New("it has no manifest: put NAME.yaml beside NAME.wasm, or pack it with hako plugin pack")
