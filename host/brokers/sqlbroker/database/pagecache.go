package database

import (
	"context"
	"sync"
)

// maxCached limits the cached pages of one database in a PageStore, to 4 MiB.
const maxCached = 1024

// pageCache caches pages of one database in a PageStore for all connections of this process. All pages belong to the
// newest version that the process has seen. It is safe for concurrent use.
type pageCache struct {
	mu      sync.Mutex // guards the fields below
	version int64
	pages   map[int64][]byte
}

// advance updates the cache to the version of the snapshot, unless it is newer.
func (c *pageCache) advance(ctx context.Context, snapshot Snapshot) error {
	c.mu.Lock()
	from, empty := c.version, len(c.pages) == 0
	c.mu.Unlock()
	to := snapshot.Version()
	if from >= to {
		return nil
	}
	var changed []int64
	if !empty {
		var err error
		if changed, err = snapshot.Changed(ctx, from); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.version >= to: // another connection has advanced it
	case c.version != from || empty: // another connection may have added pages that the query for changes did not cover
		c.pages, c.version = nil, to
	default:
		for _, number := range changed {
			delete(c.pages, number)
		}
		c.version = to
	}
	return nil
}

// get returns a page of the version, if it is cached.
func (c *pageCache) get(version, number int64) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page, ok := c.pages[number]
	return page, ok && c.version == version
}

// put caches pages that were read at the version.
func (c *pageCache) put(version int64, pages []Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.makeRoom(pages)
	}
}

// commit caches pages that were committed on top of the version.
func (c *pageCache) commit(version int64, pages []Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.version++
		c.makeRoom(pages)
	}
}

// makeRoom evicts arbitrary pages to make room for pages. The caller holds mu.
func (c *pageCache) makeRoom(pages []Page) {
	if c.pages == nil {
		c.pages = map[int64][]byte{}
	}
	for _, page := range pages {
		for number := range c.pages {
			if len(c.pages) < maxCached {
				break
			}
			delete(c.pages, number)
		}
		c.pages[page.Number] = page.Data
	}
}

// clear forgets everything.
func (c *pageCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages, c.version = nil, 0
}
