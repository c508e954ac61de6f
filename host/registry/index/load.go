package index

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/locale"
)

// fetchTime bounds how long an index may take to arrive.
const fetchTime = 15 * time.Second

// Options configures Indexes.
type Options struct {
	// Locations are those of the indexes: oci:// references, https URLs and absolute paths of files. CheckLocation has
	// accepted them.
	Locations []string
	// Dir is the directory for copies of indexes that are not files.
	Dir string
	// Fresh is the age up to which a copy is used without a request. Zero requests the index each time.
	Fresh time.Duration
	// Proxy is for requests to web servers, and may be nil.
	Proxy *url.URL
	// Pull returns the content of an artifact in an OCI registry that has one file of at most limit bytes, and the
	// artifact's digest. It returns no content if the digest is known. Nil means that there are no registries.
	Pull func(ctx context.Context, reference, known string, limit int64) (content []byte, digest string, err error)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Indexes loads the configured indexes. It is safe for concurrent use.
type Indexes struct {
	options Options

	mu sync.Mutex
	// parsed has the documents by the digests of their content, so that only changed ones are parsed.
	parsed map[[sha256.Size]byte]*document
}

// New returns the Indexes for options.
func New(options Options) *Indexes {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Indexes{options: options, parsed: map[[sha256.Size]byte]*document{}}
}

// Source is the state of one index.
type Source struct {
	// Location is as Shown returns it.
	Location string      `json:"location"`
	Title    locale.Text `json:"title,omitempty"`
	Plugins  int         `json:"plugins"`
	// Fetched is the time at which the index was last known to be current. It is zero for a file, and for one that was
	// never loaded.
	Fetched time.Time `json:"fetched,omitzero"`
	// Problem explains why the index could not be loaded. Plugins are then those of the copy from Fetched, if there is
	// one.
	Problem string `json:"problem,omitempty"`
	// Omitted lists the entries that were left out, and why.
	Omitted []string `json:"omitted,omitempty"`
}

// Load returns the plugins of all indexes, in the order of the locations, and the state of each. installed are the
// names of plugins that the operator has already, against which confusable names are marked.
func (x *Indexes) Load(ctx context.Context, installed []string) ([]Plugin, []Source) {
	sources := make([]Source, len(x.options.Locations))
	documents := make([]*document, len(sources))
	var group errgroup.Group
	group.SetLimit(4)
	for i, location := range x.options.Locations {
		group.Go(func() error {
			documents[i], sources[i] = x.load(ctx, location)
			return nil
		})
	}
	_ = group.Wait()
	var plugins []Plugin
	used := map[*document]bool{}
	for _, d := range documents {
		if d != nil {
			plugins = append(plugins, d.plugins...)
			used[d] = true
		}
	}
	x.forget(used)
	markConfusable(plugins, installed)
	return plugins, sources
}

// Find returns the plugin with the name in the index, which is named as Shown returns it.
func (x *Indexes) Find(ctx context.Context, shown, name string) (*Plugin, error) {
	at := slices.IndexFunc(x.options.Locations, func(location string) bool { return Shown(location) == shown })
	if at < 0 {
		return nil, fmt.Errorf("%s is not an index in the configuration", tidy(shown, maxURL))
	}
	d, source := x.load(ctx, x.options.Locations[at])
	if d == nil {
		return nil, fmt.Errorf("the index %s: %s", shown, source.Problem)
	}
	for i := range d.plugins {
		if d.plugins[i].Name == name {
			return new(d.plugins[i]), nil
		}
	}
	return nil, fmt.Errorf("the index %s has no plugin %q", shown, tidy(name, maxName))
}

// load returns one index; nil if there is not even a copy.
func (x *Indexes) load(ctx context.Context, location string) (*document, Source) {
	s := Source{Location: Shown(location)}
	c, err := x.content(ctx, location)
	if err != nil {
		s.Problem = tidy(err.Error(), 500)
	}
	if c == nil {
		return nil, s
	}
	s.Fetched = c.Fetched
	d, err := x.document(c.Body, location)
	if err != nil {
		s.Problem = tidy(err.Error(), 500)
		return nil, s
	}
	s.Title, s.Plugins, s.Omitted = d.title, len(d.plugins), d.omitted
	return d, s
}

// document parses an index, or returns the result of the last time.
func (x *Indexes) document(body []byte, location string) (*document, error) {
	key := sha256.Sum256(append([]byte(location+"\n"), body...))
	x.mu.Lock()
	d := x.parsed[key]
	x.mu.Unlock()
	if d != nil {
		return d, nil
	}
	d, err := parse(body, location)
	if err == nil {
		x.mu.Lock()
		x.parsed[key] = d
		x.mu.Unlock()
	}
	return d, err
}

// forget drops the documents that are not in use.
func (x *Indexes) forget(used map[*document]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, d := range x.parsed {
		if !used[d] {
			delete(x.parsed, key)
		}
	}
}

// copied is an index as it is kept in Options.Dir.
type copied struct {
	Location string `json:"location"`
	// Tag is the ETag of a web server, or the digest of an artifact.
	Tag     string    `json:"tag"`
	Fetched time.Time `json:"fetched"`
	Body    []byte    `json:"body"`
}

// content returns the current content of an index. With an error it returns the last copy, if there is one.
func (x *Indexes) content(ctx context.Context, location string) (*copied, error) {
	u, isURL := parseURL(location)
	if !isURL && !IsOCI(location) {
		body, err := wholefile.ReadAtMost(location, MaxBytes)
		if err != nil {
			return nil, err
		}
		return &copied{Body: body}, nil
	}
	have, now := x.lastCopy(location), x.options.Now()
	if have != nil && x.options.Fresh > 0 && now.Sub(have.Fetched).Abs() < x.options.Fresh {
		return have, nil
	}
	known := ""
	if have != nil {
		known = have.Tag
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	var body []byte
	var tag string
	var err error
	switch {
	case isURL:
		body, tag, err = x.get(ctx, u, known)
	case x.options.Pull == nil:
		err = errors.New("no registries are configured")
	default:
		body, tag, err = x.options.Pull(ctx, location, known, MaxBytes)
	}
	if err == nil && body != nil {
		_, err = x.document(body, location) // a broken one does not replace the copy
	}
	if err != nil {
		return have, err
	}
	if body == nil && have != nil {
		body = have.Body
	}
	fresh := &copied{Location: location, Tag: tag, Fetched: now.UTC(), Body: body}
	return fresh, x.keep(fresh)
}

// get requests an index from a web server. The body is nil if known is its current ETag.
func (x *Indexes) get(ctx context.Context, u *url.URL, known string) (body []byte, tag string, err error) {
	header := http.Header{"Accept": {"application/json, application/yaml, */*;q=0.5"}}
	if known != "" {
		header.Set("If-None-Match", known)
	}
	response, body, err := get(ctx, u, x.options.Proxy, header, MaxBytes)
	switch {
	case err != nil:
		return nil, "", err
	case response.StatusCode == http.StatusNotModified && known != "":
		return nil, known, nil
	}
	return body, response.Header.Get("ETag"), nil
}

// get requests u, a URL of the operator's. Redirects lead to https only, and to other hosts only at public addresses.
// Errors do not show the query of u.
func get(ctx context.Context, u, proxy *url.URL, header http.Header, limit int64) (*http.Response, []byte, error) {
	transport := outbound.NewPublicTransport(proxy, outbound.HostPort(u))
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, cause.WithoutURL(err)
	}
	request.Header = header
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 5:
			return errors.New("more than 5 redirects")
		case !address.IsConfidential(r.URL):
			return fmt.Errorf("it redirects to %s://%s, which is not https", r.URL.Scheme, r.URL.Host)
		}
		return nil
	}}
	response, err := client.Do(request)
	var refused *outbound.RefusedError
	if errors.As(err, &refused) {
		return nil, nil, fmt.Errorf(
			"it redirects to %s at %s address: only public addresses are reached, and servers that the "+
				"configuration names", refused.Host, refused.Kind)
	}
	if err != nil {
		return nil, nil, cause.WithoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotModified {
		return nil, nil, fmt.Errorf("the server answers %d %s", response.StatusCode,
			http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("the response is larger than %s", strictyaml.FormatSize(limit))
	}
	return response, body, err
}

// lastCopy returns the copy of an index; nil if there is none that can be read.
func (x *Indexes) lastCopy(location string) *copied {
	data, err := wholefile.ReadAtMost(x.copyPath(location), 2*MaxBytes)
	var c copied
	if err != nil || json.Unmarshal(data, &c) != nil || c.Location != location {
		return nil
	}
	return &c
}

// keep stores a copy.
func (x *Indexes) keep(c *copied) error {
	data, err := json.Marshal(c)
	if err == nil {
		err = os.MkdirAll(x.options.Dir, 0o700)
	}
	if err == nil {
		err = wholefile.Write(x.copyPath(c.Location), data)
	}
	if err != nil {
		return fmt.Errorf("keep a copy for the time without a network: %w", err)
	}
	return nil
}

func (x *Indexes) copyPath(location string) string {
	return filepath.Join(x.options.Dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(location)))[:37])
}
