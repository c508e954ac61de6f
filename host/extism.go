package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	httpbroker "github.com/hako-run/hako/host/broker/http"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/internal/wholefile"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// adopt makes spec run an Extism guest, and returns its manifest with everything that it offers. client may be nil. It fails with errAsked
// if the guest has to be asked for that first.
func (h *Host) adopt(p *pluginFile, client *httpbroker.Broker, spec *sandbox.Spec) (*manifest.Manifest, error) {
	config, err := h.options().configure(p.manifest)
	if err != nil {
		return nil, err
	}
	adapter, err := extism.New(p.module, &extism.Options{Config: config, HTTP: client})
	if err != nil {
		return nil, err
	}
	adapter.Equip(spec)
	key := sha256.Sum256(fmt.Append(nil, p.module.Digest, string(config)))
	asked := *spec
	listing, err := h.store.listing(hex.EncodeToString(key[:]), func(key string) ([]byte, error) {
		return h.listings.take(key, func(ctx context.Context) ([]byte, error) { return h.ask(ctx, p, config, asked) })
	})
	if err != nil {
		return nil, err
	}
	return extism.Complete(p.manifest, listing)
}

// ask runs an Extism guest to learn what it offers, with its configuration and nothing else.
func (h *Host) ask(ctx context.Context, p *pluginFile, config []byte, spec sandbox.Spec) (_ []byte, err error) {
	adapter, err := extism.New(p.module, &extism.Options{Config: config})
	if err != nil {
		return nil, err
	}
	adapter.Equip(&spec)
	spec.Mounts = nil
	spec.Limits = spec.Limits.Or(manifest.DefaultLimits)
	spec.Limits.Time = min(spec.Limits.Time, h.listings.time)
	plugin := h.engine.Load(spec)
	defer func() { err = errors.Join(err, plugin.Close()) }()
	return extism.List(ctx, plugin)
}

// listingSuffix ends the names of kept listings.
const listingSuffix = ".listing.json"

// listing returns what an Extism guest offers, from disk if it has been asked before.
func (s *store) listing(key string, ask func(key string) ([]byte, error)) ([]byte, error) {
	if s.dir == "" {
		return ask(key)
	}
	path := filepath.Join(s.dir, key+listingSuffix)
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		if now := time.Now(); !s.readOnly {
			_ = os.Chtimes(path, now, now) // one that is pruned is asked for again
		}
		return data, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("what the plugin offers: %w", err)
	}
	if data, err = ask(key); err != nil || s.readOnly {
		return data, err
	}
	return data, wholefile.Write(path, data)
}
