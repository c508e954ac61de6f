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

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpjson"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/wholefile"
)

// configureExtism configures spec for an Extism guest. It sets the manifest of s, completed with the guest's listing.
// client may be nil. It fails with errAsked until the listing is available.
func (h *Host) configureExtism(p *pluginFile, s *service, client *httpbroker.Broker, spec *sandbox.Spec) error {
	config, err := h.options().configure(p.manifest, s.grants)
	if err != nil {
		return err
	}
	var placeholders []string
	for name, key := range p.manifest.Config {
		if key.Credential != "" {
			placeholders = append(placeholders, name)
		}
	}
	adapter, err := extism.New(p.module, &extism.Options{Config: config, Placeholders: placeholders, HTTP: client,
		Tools: p.manifest.Tools})
	if err != nil {
		return err
	}
	adapter.Equip(spec)
	if len(p.manifest.Tools) > 0 {
		return nil // the manifest says what there is
	}
	asking, err := extism.New(p.module, &extism.Options{Config: config, Placeholders: placeholders})
	if err != nil {
		return err
	}
	asked := *spec
	asking.Equip(&asked)
	listing, err := h.askListing(p, config, asked, extism.List)
	if err != nil {
		return err
	}
	s.manifest, s.omitted, err = mcpjson.Complete(p.manifest, listing)
	return err
}

// askListing asks a guest for its list of tools, prompts and resources. spec must grant it nothing but
// mounts, which are left out. It fails with errAsked until the listing is available.
func (h *Host) askListing(p *pluginFile, config []byte, spec sandbox.Spec,
	list func(context.Context, *sandbox.Plugin) ([]byte, error)) ([]byte, error) {
	spec.Mounts = nil
	spec.Limits = spec.Limits.Or(manifest.DefaultLimits)
	spec.Limits.Time = min(spec.Limits.Time, h.listings.time)
	key := sha256.Sum256(fmt.Append(nil, p.module.Digest, string(config)))
	return h.copies.listing(hex.EncodeToString(key[:]), func(key string) ([]byte, error) {
		return h.listings.request(key, func(ctx context.Context) (_ []byte, err error) {
			plugin := h.engine.Load(spec)
			defer func() { err = errors.Join(err, plugin.Close()) }()
			return list(ctx, plugin)
		})
	})
}

// listingSuffix is the file name suffix of stored listings.
const listingSuffix = ".listing.json"

// listing returns the listing of an Extism guest, from disk if it was stored before.
func (s *copies) listing(key string, ask func(key string) ([]byte, error)) ([]byte, error) {
	if s.dir.Path == "" {
		return ask(key)
	}
	path := filepath.Join(s.dir.Path, key+listingSuffix)
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		if now := time.Now(); !s.dir.ReadOnly {
			_ = os.Chtimes(path, now, now) // on failure it is pruned and made again
		}
		return data, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("list the plugin's tools: %w", err)
	}
	if data, err = ask(key); err != nil || s.dir.ReadOnly {
		return data, err
	}
	return data, errors.Join(os.MkdirAll(s.dir.Path, 0o700), wholefile.Write(path, data))
}
