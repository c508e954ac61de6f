package console

import (
	"context"
	"time"

	"github.com/hako-run/hako/host/registry/index"
)

// Indexes are the operator's indexes of plugins.
type Indexes interface {
	// Search returns the plugins that match a query and the state of each index. installed are the names of the plugins
	// on this machine.
	Search(ctx context.Context, query string, installed []string) ([]index.Plugin, []index.Source)
	// Read downloads a plugin for the folder from the index in which it is listed; nothing of it runs. Files come from
	// the operator's registries, the hosts of the indexes, and public addresses.
	Read(ctx context.Context, index, name string) (*Addition, error)
}

// maxFound bounds the plugins of a search.
const maxFound = 200

// indexJSON is the result of a search in the indexes. Total counts the plugins beyond maxFound too.
type indexJSON struct {
	Items   []listedJSON `json:"items"`
	Total   int          `json:"total"`
	Indexes []sourceJSON `json:"indexes"`
}

// listedJSON is a plugin in an index. Installed is the version of the plugin of that name on this machine.
type listedJSON struct {
	Index       string `json:"index"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Asks        string `json:"asks"`
	License     string `json:"license"`
	Publisher   string `json:"publisher"`
	Homepage    string `json:"homepage"`
	Reference   string `json:"reference"`
	Resembles   string `json:"resembles,omitempty"`
	Installed   string `json:"installed,omitempty"`
}

// sourceJSON is the state of an index.
type sourceJSON struct {
	Location string    `json:"location"`
	Title    string    `json:"title"`
	Plugins  int       `json:"plugins"`
	Fetched  time.Time `json:"fetched,omitzero"`
	Problem  string    `json:"problem,omitempty"`
	Omitted  []string  `json:"omitted,omitempty"`
}

func (c *Console) searchIndexes(q *request) (any, error) {
	answer := &indexJSON{Items: []listedJSON{}, Indexes: []sourceJSON{}}
	if c.options.Indexes == nil {
		return answer, nil
	}
	versions, names := map[string]string{}, []string{}
	for _, p := range c.options.Host.Plugins() {
		if p.Name != "" {
			versions[p.Name] = p.Version
			names = append(names, p.Name)
		}
	}
	plugins, sources := c.options.Indexes.Search(q.Context(), q.param("q"), names)
	answer.Total = len(plugins)
	for _, p := range plugins[:min(len(plugins), maxFound)] {
		answer.Items = append(answer.Items, listedJSON{
			Index: p.Index, Name: p.Name, Version: p.Version, Title: p.Title.In(q.language),
			Description: p.Description.In(q.language), Asks: p.Asks.In(q.language), License: p.License,
			Publisher: p.Publisher, Homepage: p.Homepage, Reference: p.Reference, Resembles: p.Resembles,
			Installed: versions[p.Name],
		})
	}
	for _, s := range sources {
		answer.Indexes = append(answer.Indexes, sourceJSON{s.Location, s.Title.In(q.language), s.Plugins, s.Fetched,
			s.Problem, s.Omitted})
	}
	return answer, nil
}

// listingJSON names a plugin in an index. Digest is that of the plugin that was shown, empty where it is only shown.
type listingJSON struct {
	Index   string `json:"index"`
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Replace bool   `json:"replace"`
}

// readListed shows what a plugin of an index asks for. Nothing is kept.
func (c *Console) readListed(q *request) (any, error) {
	return c.withListed(q, func(p *Addition, _ *listingJSON) (any, error) { return c.shown(q, p), nil })
}

// addListed downloads a plugin of an index again and adds it. The digest says which one was shown.
func (c *Console) addListed(q *request) (any, error) {
	return c.withListed(q,
		func(p *Addition, l *listingJSON) (any, error) { return c.add(q, p, "plugin.add", l.Digest, l.Replace) })
}

func (c *Console) withListed(q *request, use func(*Addition, *listingJSON) (any, error)) (any, error) {
	l := new(listingJSON)
	if err := q.decode(l); err != nil {
		return nil, err
	}
	_, end, err := c.beginAdding(q)
	if err != nil {
		return nil, err
	}
	defer end()
	if c.options.Indexes == nil {
		return nil, notFound("index", l.Index)
	}
	p, err := c.options.Indexes.Read(q.Context(), l.Index, l.Name)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return use(p, l)
}
