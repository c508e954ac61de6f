package server

import (
	"context"
	"sync"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/registry/index"
)

// indexFresh is the age up to which the console uses the copy of an index without a request: people type words one
// after the other.
const indexFresh = time.Minute

// pluginIndexes are the indexes of the configuration in force, for the console.
type pluginIndexes struct {
	config func() *config.Config

	mu sync.Mutex
	// indexes are those of the configuration of.
	indexes *index.Indexes
	of      *config.Config
}

// current returns the indexes of the configuration in force.
func (x *pluginIndexes) current() (*index.Indexes, *config.Config) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.config(); x.of != c {
		x.indexes, x.of = pluginfile.Indexes(c, indexFresh), c
	}
	return x.indexes, x.of
}

// Search implements console.Indexes.
func (x *pluginIndexes) Search(ctx context.Context, query string, installed []string) ([]index.Plugin, []index.Source) {
	indexes, _ := x.current()
	plugins, sources := indexes.Load(ctx, installed)
	return index.Search(plugins, query), sources
}

// Read implements console.Indexes.
func (x *pluginIndexes) Read(ctx context.Context, at, name string) (*console.Addition, error) {
	indexes, c := x.current()
	listed, err := indexes.Find(ctx, at, name)
	if err != nil {
		return nil, err
	}
	folder, err := install.Open(c)
	if err != nil {
		return nil, err
	}
	download, err := folder.FetchListed(ctx, listed)
	if err != nil {
		return nil, err
	}
	p, err := folder.Read(download, listed.Digest)
	if err != nil {
		return nil, err
	}
	return newAddition(p), nil
}

// serverRegistry is the registry of MCP servers of the configuration in force, for the console.
type serverRegistry struct{ config func() *config.Config }

// SearchServers implements console.Servers.
func (x serverRegistry) SearchServers(ctx context.Context, query string, limit int) (registry string,
	found []index.Server, more bool, err error) {
	c := x.config()
	if c.Index.Servers == "" {
		return "", nil, false, nil
	}
	found, more, err = index.Servers(ctx, c.Index.Servers, c.ProxyURL(), query, limit)
	return c.Index.Servers, found, more, err
}

// newAddition returns p as the console shows it.
func newAddition(p *install.Addition) *console.Addition {
	return &console.Addition{Manifest: p.Manifest, Digest: p.Digest, Path: p.Path, Exists: p.Exists(), Size: p.Size(),
		From: pluginfile.Pinned(p.Entry.From, p.Entry.Digest), Signer: p.Signer(), Place: p.Place,
		Changes: func(language string) ([]string, error) {
			_, lines, err := p.Changes(language)
			return lines, err
		}}
}
