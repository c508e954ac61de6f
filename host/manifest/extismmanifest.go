package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// ExtismModule returns the path of the plugin file that the manifest of Extism at path names. It is an error if that
// file is not beside the manifest, or if the manifest names several or none: ReadFile reads one plugin, with what lies
// beside it.
func ExtismModule(path string) (string, error) {
	text, err := readRegular(path, MaxBytes)
	if err != nil {
		return "", err
	}
	modules, err := readExtismModules(text)
	switch {
	case err != nil || len(modules) == 0:
		return "", fmt.Errorf("%s is neither a plugin nor a manifest of Extism, which names its file in \"wasm\"", path)
	case len(modules) > 1:
		return "", fmt.Errorf("%s: %w", path, errLinked)
	case modules[0].path == "" || !filepath.IsLocal(modules[0].path) || filepath.Base(modules[0].path) != modules[0].path:
		return "", fmt.Errorf("%s does not name a file beside it: download the plugin into its folder, and set "+
			"wasm[0].path to the name of the file", path)
	}
	return filepath.Join(filepath.Dir(path), modules[0].path), nil
}

var errLinked = errors.New("it links several modules, and hako runs one: link them into one file, " +
	"or put a manifest beside the plugin")

// readExtismModules returns the entries of "wasm".
func readExtismModules(text []byte) (modules []extismModule, err error) {
	err = strictyaml.Read(text, MaxBytes, func(v strictyaml.Value) {
		v.Map(func(key string, v strictyaml.Value) {
			if key == "wasm" && v.IsList() {
				strictyaml.List(&modules, readExtismModule)(v)
			}
		})
	}, nil)
	return modules, err
}

// readExtism reads the manifest of Extism that lies beside the plugin with the name file: its hosts and paths are the
// permissions that the plugin asks for, and its configuration becomes keys without their values, which belong into the
// operator's configuration, because many are secrets. Limits are not read. A manifest that does not name the file is
// another plugin's, and asks for nothing.
//
// Source: https://extism.org/docs/concepts/manifest, and the types of github.com/extism/extism, manifest/src/lib.rs.
func (m *draftManifest) readExtism(text []byte, file string, wasm []byte) error {
	modules, err := readExtismModules(text)
	own := extismModule{}
	for _, module := range modules {
		if path.Base(strings.ReplaceAll(module.path, `\`, "/")) == file {
			own = module
		}
	}
	switch digest := sha256.Sum256(wasm); {
	case err != nil || own.path == "":
		return nil // nothing says that it is Extism's, or this plugin's
	case len(modules) > 1:
		return errLinked
	case own.hash != "" && !strings.EqualFold(own.hash, hex.EncodeToString(digest[:])):
		return errors.New("it has the hash of another file: it is not the intended one")
	}
	return strictyaml.Read(text, MaxBytes, m.readExtismSettings, func() error { return nil })
}

// extismModule is an entry of "wasm".
type extismModule struct{ path, hash string }

func readExtismModule(v strictyaml.Value, module *extismModule) {
	v.Map(func(key string, v strictyaml.Value) {
		switch {
		case key == "path" && v.IsText():
			module.path, _ = v.Text()
		case key == "hash" && v.IsText():
			module.hash, _ = v.Text()
		}
	})
}

func (m *draftManifest) readExtismSettings(v strictyaml.Value) {
	v.Map(func(key string, v strictyaml.Value) {
		if v.IsUnset() {
			return
		}
		switch key {
		case "wasm", "memory", "timeout_ms": // the limits of hako hold
		case "allowed_hosts":
			v.List(func(_ int, v strictyaml.Value) {
				if host, ok := v.Text(); ok {
					m.addHost(v, host, "Extism's manifest")
				}
			})
		case "allowed_paths":
			v.Map(m.readExtismPath)
		case "config":
			v.Map(func(key string, v strictyaml.Value) {
				if !configName().MatchString(key) {
					m.leave(v, "%q cannot be a key of the configuration", key)
					return
				}
				m.addKey(v, key, "Key "+key+" of Extism's manifest")
			})
		default:
			m.leave(v, "has no counterpart here")
		}
	})
}

// readExtismPath asks for a mount: from is a directory of the machine, "ro:" before it forbids writing, and v is where
// the plugin sees it.
func (m *draftManifest) readExtismPath(from string, v strictyaml.Value) {
	at, ok := v.Text()
	if !ok {
		return
	}
	f := draftFiles{Mount: strings.Trim(at, "/"), Access: ReadWrite, Reason: "Extism's manifest names " + from}
	if dir, ok := strings.CutPrefix(from, "ro:"); ok {
		f.Access, f.Reason = ReadOnly, "Extism's manifest names "+dir
	}
	if !ValidName(f.Mount) {
		m.leave(v, "plugins see a folder as /NAME (1 to 40 of a-z, 0-9 and \"-\"), and not as %q", at)
		return
	}
	m.addFiles(v, f)
}
