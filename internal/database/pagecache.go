package database

import (
	"context"
	"sync"
)

// maxCached is how many pages of one database in a Place are kept: 4 MiB.
const maxCached = 1024

// pageCache keeps pages of one version of a database in a Place, the newest that this process knows, for all of its connections. It is
// safe for concurrent use.
type pageCache struct {
	mu      sync.Mutex // guards what follows
	version int64
	pages   map[int64][]byte
}

// advance brings the cache to the version of the snapshot, unless it is at a newer one.
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
	case c.version >= to: // another connection was faster
	case c.version != from || empty: // meanwhile another one may have kept pages that nobody has asked about
		c.pages, c.version = nil, to
	default:
		for _, number := range changed {
			delete(c.pages, number)
		}
		c.version = to
	}
	return nil
}

// get returns a page as it is in that version, if it is known.
func (c *pageCache) get(version, number int64) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page, ok := c.pages[number]
	return page, ok && c.version == version
}

// put keeps pages that were read at that version.
func (c *pageCache) put(version int64, pages []Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.keep(pages)
	}
}

// commit keeps pages that were written on top of that version.
func (c *pageCache) commit(version int64, pages []Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.version++
		c.keep(pages)
	}
}

// keep makes room for pages by giving up others, whichever. mu is held.
func (c *pageCache) keep(pages []Page) {
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
