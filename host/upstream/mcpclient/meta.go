package mcpclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// maxMeta bounds the metadata of a listed entry in bytes of JSON. Those of a result count for its size.
const maxMeta = 64 << 10

// uiScheme is that of the resources that MCP Apps shows as user interfaces. Hosts look for it at the beginning of a URI.
const uiScheme = "ui://"

// outside returns a URI of the server's as clients see it: the server's name is in front, and of a user interface within
// it, at the beginning of its authority.
func (s *Spec) outside(uri string) string {
	if rest, ok := strings.CutPrefix(uri, uiScheme); ok {
		return uiScheme + s.scheme() + rest
	}
	return s.scheme() + uri
}

// inside is the inverse of outside. It reports false for the URI of another server.
func (s *Spec) inside(uri string) (own string, ok bool) {
	if rest, ok := strings.CutPrefix(uri, uiScheme+s.scheme()); ok {
		return uiScheme + rest, true
	}
	return strings.CutPrefix(uri, s.scheme())
}

// reservedMeta matches the metadata that says something about the connection to a client, or that hako itself gives:
// MCP reserves prefixes with the label "modelcontextprotocol" or "mcp" before the last one (specification, _meta), and
// names tokens and traces without a prefix.
var reservedMeta = lazyregexp.New(`^(([^/]*\.)?(modelcontextprotocol|mcp)(\.[^/]*)?/|run\.hako/|` +
	`(progressToken|traceparent|tracestate|baggage)$)`)

// metadata returns the metadata of the server for clients, without reserved keys and hidden characters, and with URIs of
// user interfaces as clients see them. It is nil if nothing is left. Clients and the apps that they show read it; models
// do not.
func (s *Spec) metadata(meta mcp.Meta) (json.RawMessage, error) {
	passed := map[string]any{}
	for key, value := range meta {
		if !reservedMeta().MatchString(key) {
			passed[key] = s.withURIs(value)
		}
	}
	if len(passed) == 0 {
		return nil, nil
	}
	cleaned, err := cleanValue(passed)
	if err != nil {
		return nil, err
	}
	return json.Marshal(cleaned)
}

// listedMeta is metadata for an entry of a list. It leaves out what is too large, which o notes.
func (o *offer) listedMeta(spec *Spec, entry string, meta mcp.Meta) json.RawMessage {
	data, err := spec.metadata(meta)
	if err == nil && len(data) > maxMeta {
		err = fmt.Errorf("it has more than %d KiB", maxMeta>>10)
	}
	if err != nil {
		o.omit("_meta of %s: %v", entry, err)
		return nil
	}
	return data
}

// withURIs returns a copy of a JSON value with the URIs of user interfaces as clients see them.
func (s *Spec) withURIs(value any) any {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, uiScheme) {
			return s.outside(v)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = s.withURIs(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key := range v {
			object[key] = s.withURIs(v[key])
		}
		return object
	}
	return value
}
