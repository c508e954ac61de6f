package console

import (
	"context"

	"github.com/hako-run/hako/host/registry/index"
)

// Servers is the operator's registry of upstream MCP servers.
type Servers interface {
	// SearchServers returns at most limit servers with every word of query, and whether there are more. registry is the
	// address that was asked, empty if none is configured.
	SearchServers(ctx context.Context, query string, limit int) (registry string, found []index.Server,
		more bool, err error)
}

// maxServers bounds the servers of a search.
const maxServers = 50

// serversJSON is the result of a search for upstream servers. Registry is empty if none is configured.
type serversJSON struct {
	Registry string         `json:"registry,omitempty"`
	Items    []index.Server `json:"items"`
	More     bool           `json:"more,omitempty"`
}

// searchServers searches the registry of upstream servers. The words leave the operator's network.
func (c *Console) searchServers(q *request) (any, error) {
	answer := &serversJSON{Items: []index.Server{}}
	if c.options.Servers == nil {
		return answer, nil
	}
	registry, found, more, err := c.options.Servers.SearchServers(q.Context(), q.param("q"), maxServers)
	if err != nil {
		return nil, invalid("%v", err)
	}
	answer.Registry, answer.Items, answer.More = registry, append(answer.Items, found...), more
	return answer, nil
}
