package authserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// documentTimeout limits the fetch of a document.
	documentTimeout = 5 * time.Second
	// A document is used for as long as its server allows, within these bounds. A failure is remembered for a short
	// time.
	minDocumentAge  = time.Minute
	maxDocumentAge  = time.Hour
	documentFailure = 30 * time.Second
	// maxDocuments limits the cache, maxFetches the concurrent fetches.
	maxDocuments = 256
	maxFetches   = 8
)

var (
	errDocument = errors.New("the client ID metadata document cannot be used")
	errBusy     = errors.New("too many documents are being fetched")
)

// documents fetches client ID metadata documents (draft-ietf-oauth-client-id-metadata-document) and caches them. It is
// safe for concurrent use.
type documents struct {
	client *http.Client
	now    func() time.Time
	slots  chan struct{}

	mu    sync.Mutex // guards cache
	cache map[string]*document
}

// document is a fetched document, or why there is none. done is closed when the fetch has ended; the other fields are
// valid then.
type document struct {
	done    chan struct{}
	client  *metadata
	err     error
	expires time.Time
}

func newDocuments(client *http.Client, now func() time.Time) *documents {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Timeout = documentTimeout
	return &documents{client: &own, now: now, slots: make(chan struct{}, maxFetches), cache: map[string]*document{}}
}

// load returns the client with that ID. Concurrent requests share a fetch. mayFetch is asked before one.
func (d *documents) load(ctx context.Context, id string, mayFetch func() bool) (*metadata, error) {
	d.mu.Lock()
	found := d.cache[id]
	if found != nil && found.ended() && !d.now().Before(found.expires) {
		found = nil
	}
	if found == nil {
		if !mayFetch() {
			d.mu.Unlock()
			return nil, errBusy
		}
		select {
		case d.slots <- struct{}{}:
		default:
			d.mu.Unlock()
			return nil, errBusy
		}
		found = &document{done: make(chan struct{})}
		d.makeRoom()
		d.cache[id] = found
		go d.fetch(id, found)
	}
	d.mu.Unlock()
	select {
	case <-found.done:
		return found.client, found.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *document) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// makeRoom removes expired documents from a full cache, and any other one if there are none. mu is held.
func (d *documents) makeRoom() {
	if len(d.cache) < maxDocuments {
		return
	}
	for id, known := range d.cache {
		if known.ended() && !d.now().Before(known.expires) {
			delete(d.cache, id)
		}
	}
	for id, known := range d.cache {
		if len(d.cache) < maxDocuments {
			return
		}
		if known.ended() {
			delete(d.cache, id)
		}
	}
}

// fetch is not canceled with the request that began it, because others share the result. The client's timeout ends it.
func (d *documents) fetch(id string, into *document) {
	defer func() { <-d.slots }()
	defer close(into.done)
	age := documentFailure
	into.client, age, into.err = d.get(id)
	into.expires = d.now().Add(age)
}

func (d *documents) get(id string) (*metadata, time.Duration, error) {
	request, err := http.NewRequest(http.MethodGet, id, nil)
	if err != nil {
		return nil, documentFailure, fmt.Errorf("%w: %w", errDocument, err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return nil, documentFailure, fmt.Errorf("%w: %w", errDocument, err)
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, documentFailure, fmt.Errorf("%w: its server answers with the status %d", errDocument,
			response.StatusCode)
	case kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return nil, documentFailure, fmt.Errorf("%w: its media type is not JSON", errDocument)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxMetadata+1))
	if err != nil {
		return nil, documentFailure, fmt.Errorf("%w: %w", errDocument, err)
	}
	client, err := parseDocument(id, data)
	if err != nil {
		return nil, documentFailure, err
	}
	return client, maxAge(response.Header), nil
}

// parseDocument reads the untrusted document of a client ID.
func parseDocument(id string, data []byte) (*metadata, error) {
	client, err := parseMetadata(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	case client.ID != id:
		return nil, fmt.Errorf("%w: its client_id is not its own URL", errDocument)
	case client.Name == "":
		return nil, fmt.Errorf("%w: client_name is missing", errDocument)
	case client.AuthMethod != "" && client.AuthMethod != "none":
		return nil, fmt.Errorf("%w: only public clients are supported (token_endpoint_auth_method: none)", errDocument)
	}
	return client, nil
}

// maxAge returns how long a response may be cached.
func maxAge(header http.Header) time.Duration {
	age := 10 * time.Minute
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
		switch {
		case name == "no-store", name == "no-cache":
			return minDocumentAge
		case name == "max-age" && err == nil:
			age = time.Duration(seconds) * time.Second
		}
	}
	return min(max(age, minDocumentAge), maxDocumentAge)
}
