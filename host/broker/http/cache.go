package httpbroker

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// cache keeps answers in memory for one plugin: a private cache in the sense of RFC 9111. What was used longest ago goes
// first. It is safe for concurrent use.
type cache struct {
	limit int64 // bytes

	mu    sync.Mutex // guards what follows
	size  int64
	byKey map[string]*list.Element // of *entry
	used  list.List                // front: used last
}

// entry is one stored answer. It does not change once it is stored.
type entry struct {
	key, url  string
	status    int
	header    http.Header
	body      []byte
	requested time.Time
	received  time.Time
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, byKey: map[string]*list.Element{}}
}

// entryLimit is the largest body kept, so that one answer does not push all others out.
func (c *cache) entryLimit() int64 { return c.limit / 4 }

// size is about what e takes in memory.
func (e *entry) size() int64 {
	n := 512 + len(e.key) + len(e.url) + len(e.body)
	for name, values := range e.header {
		n += len(name) + 64
		for _, v := range values {
			n += len(v) + 16
		}
	}
	return int64(n)
}

func (c *cache) get(key string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.used.MoveToFront(el)
	return el.Value.(*entry)
}

func (c *cache) put(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byKey[e.key]; ok {
		c.remove(el)
	}
	c.byKey[e.key] = c.used.PushFront(e)
	for c.size += e.size(); c.size > c.limit; {
		c.remove(c.used.Back())
	}
}

// remove is called with mu held.
func (c *cache) remove(el *list.Element) {
	e := c.used.Remove(el).(*entry)
	delete(c.byKey, e.key)
	c.size -= e.size()
}

// removeURL forgets every answer for url, whatever headers it was asked for with.
func (c *cache) removeURL(url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for el := c.used.Front(); el != nil; {
		next := el.Next()
		if el.Value.(*entry).url == url {
			c.remove(el)
		}
		el = next
	}
}

// cacheKey is the URL with all request headers but the cache's own, the tenant, and whose credential goes along. So two requests share an
// answer only if they are the same in all that a Vary header could name, and in tenant and account.
func cacheKey(r *request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%q", r.target.String(), r.tenant)
	if c := r.credential; c != nil {
		fmt.Fprintf(&b, " %q %q", r.rule.credential, c.Account)
	}
	names := make([]string, 0, len(r.header))
	for name := range r.header {
		if name != "Cache-Control" && name != "Pragma" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.header[name] {
			b.WriteString("\n" + name + ":" + value)
		}
	}
	return b.String()
}

// cacheable reports requests that the cache may answer: a GET of the whole that is not conditional already.
func cacheable(r *request) bool {
	if r.method != http.MethodGet || len(r.body) > 0 {
		return false
	}
	for _, name := range []string{"Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"} {
		if _, ok := r.header[name]; ok {
			return false
		}
	}
	return true
}

// sendCached answers from the cache where it may, asks the server to confirm what is stale, and stores what comes.
func (b *Broker) sendCached(ctx context.Context, r *request) (*Response, error) {
	if !cacheable(r) {
		return b.sendInvalidating(ctx, r)
	}
	want := directives(r.header)
	e := b.cache.get(cacheKey(r))
	if e != nil && e.serves(want, b.now()) {
		return e.response(b.now()), nil
	}
	if _, ok := want["only-if-cached"]; ok {
		return bytesResponse(http.StatusGatewayTimeout, http.Header{}, nil, SourceCache), nil
	}
	asked, requested := r, b.now()
	if e != nil {
		asked = e.conditional(r)
	}
	resp, err := b.sendRenewing(ctx, asked)
	if err != nil {
		return nil, err
	}
	if e != nil && resp.Status == http.StatusNotModified {
		resp.discard()
		e = e.confirmed(resp.Header, requested, b.now())
		b.cache.put(e)
		return e.response(b.now()), nil
	}
	b.keep(r, want, resp, requested)
	return resp, nil
}

// sendInvalidating sends r past the cache and forgets what r may have changed (RFC 9111, section 4.4).
func (b *Broker) sendInvalidating(ctx context.Context, r *request) (*Response, error) {
	resp, err := b.sendRenewing(ctx, r)
	changes := !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.method)
	if err == nil && changes && resp.Status < 400 {
		b.cache.removeURL(r.target.String())
	}
	return resp, err
}

// keep has resp stored once its body has been read to the end, if it may be stored.
func (b *Broker) keep(r *request, want map[string]string, resp *Response, requested time.Time) {
	if !storable(want, resp) {
		if resp.Status < 500 {
			b.cache.removeURL(r.target.String())
		}
		return
	}
	e := &entry{key: cacheKey(r), url: r.target.String(), status: resp.Status, header: withoutCookies(resp.Header), requested: requested, received: b.now()}
	resp.Body = &keeper{ReadCloser: resp.Body, cache: b.cache, entry: e}
}

// withoutCookies is a copy of h without what is for one request alone.
func withoutCookies(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Set-Cookie")
	h.Del("Set-Cookie2")
	return h
}

// keeper copies a body on its way to the guest, and stores the entry when it has seen the end.
type keeper struct {
	io.ReadCloser
	cache *cache
	entry *entry
	body  bytes.Buffer
}

func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if k.entry == nil {
		return n, err
	}
	k.body.Write(p[:n])
	switch {
	case int64(k.body.Len()) > k.cache.entryLimit():
		k.entry, k.body = nil, bytes.Buffer{}
	case err == io.EOF:
		k.entry.body = bytes.Clone(k.body.Bytes())
		k.cache.put(k.entry)
		k.entry = nil
	}
	return n, err
}
