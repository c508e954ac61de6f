package inspect

import (
	"path/filepath"
	"slices"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
)

// Signers holds who signed the plugins in the plugin folders, as the lock file records it from when they were installed
// there or on another machine.
type Signers struct {
	folders []string
	locked  lock.Plugins
}

// LoadSigners reads the lock file.
func LoadSigners(c *config.Config) (Signers, error) {
	locked, err := lock.Load(c.LockFile())
	return Signers{c.Plugins, locked}, err
}

// Of returns who signed the file of a plugin. A file that is not the recorded one is unsigned. ok is false for plugins
// that are in no folder, such as shipped ones.
func (s Signers) Of(p *host.Status) (signer signature.Signer, ok bool) {
	if !slices.Contains(s.folders, filepath.Dir(p.Path)) || p.Digest == "" {
		return signer, false
	}
	if e := s.locked[p.Name].Entry; e.Wasm == p.Digest && e.Signer != nil {
		signer = signature.Signer(*e.Signer)
	}
	return signer, true
}

// Text returns who signed the file of a plugin, as recorded. It is empty for plugins that are in no folder.
func (s Signers) Text(p *host.Status) string {
	signer, ok := s.Of(p)
	if !ok {
		return ""
	}
	if signer == (signature.Signer{}) {
		return signer.String()
	}
	return signer.String() + ", according to the lock file"
}
