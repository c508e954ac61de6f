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

// cache is an in-memory private cache (RFC 9111) for one plugin. It evicts the least recently used response first. It
// is safe for concurrent use.
type cache struct {
	limit int64 // bytes

	mu    sync.Mutex // guards the fields below
	size  int64
	byKey map[string]*list.Element // of *entry
	used  list.List                // front: most recently used
}

// entry is a stored response. It is immutable once stored.
type entry struct {
	key, url  string
	status    int
	header    http.Header
	body      []byte
	requested time.Time
	received  time.Time
}

// size returns the approximate memory size of e.
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

// remove removes an entry. The caller holds mu.
func (c *cache) remove(el *list.Element) {
	e := c.used.Remove(el).(*entry)
	delete(c.byKey, e.key)
	c.size -= e.size()
}

// removeURL removes every response for url, whatever the request headers.
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

// cacheKey returns a key of the URL, the tenant, the credential's account, and all request headers except those for
// caches. So two requests share a response only if they agree in everything that Vary could name, and in tenant and
// account: a response to one credential never reaches another, at the price of some hits.
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

// cacheable reports whether the cache may answer a request: an unconditional GET without Range.
func cacheable(r *request) bool {
	if r.method != http.MethodGet || len(r.body) > 0 {
		return false
	}
	for _, name := range []string{"Range", "If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since", "If-Range"} {
		if _, ok := r.header[name]; ok {
			return false
		}
	}
	return true
}

// sendCached answers from the cache if possible, revalidates stale responses, and stores new ones.
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
	b.storeWhenRead(r, want, resp, requested)
	return resp, nil
}

// sendInvalidating sends r without the cache and removes the responses that r may have invalidated (RFC 9111, section
// 4.4).
func (b *Broker) sendInvalidating(ctx context.Context, r *request) (*Response, error) {
	resp, err := b.sendRenewing(ctx, r)
	changes := !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.method)
	if err == nil && changes && resp.Status < 400 {
		b.cache.removeURL(r.target.String())
	}
	return resp, err
}

// storeWhenRead stores resp, if that is allowed, once its body has been read to the end.
func (b *Broker) storeWhenRead(r *request, want map[string]string, resp *Response, requested time.Time) {
	if !storable(want, resp) {
		if resp.Status < 500 {
			b.cache.removeURL(r.target.String())
		}
		return
	}
	e := &entry{key: cacheKey(r), url: r.target.String(), status: resp.Status, header: withoutCookies(resp.Header),
		requested: requested, received: b.now()}
	resp.Body = &storingBody{ReadCloser: resp.Body, cache: b.cache, entry: e}
}

// withoutCookies returns a copy of h without headers that belong to a single response.
func withoutCookies(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Set-Cookie")
	h.Del("Set-Cookie2")
	return h
}

// storingBody copies a body while the guest reads it, and stores the entry at its end.
type storingBody struct {
	io.ReadCloser
	cache *cache
	entry *entry
	body  bytes.Buffer
}

func (s *storingBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.entry == nil {
		return n, err
	}
	s.body.Write(p[:n])
	switch {
	case int64(s.body.Len()) > s.cache.limit/4: // one response must not evict all others
		s.entry, s.body = nil, bytes.Buffer{}
	case err == io.EOF:
		s.entry.body = bytes.Clone(s.body.Bytes())
		s.cache.put(s.entry)
		s.entry = nil
	}
	return n, err
}
