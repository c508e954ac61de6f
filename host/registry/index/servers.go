package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictjson"
)

// Bounds of a search for servers.
const (
	maxPage      = 4 << 20
	serversPage  = 100
	maxPages     = 5
	maxCursor    = 1000
	maxSetups    = 20
	officialMeta = "io.modelcontextprotocol.registry/official"
)

// Server is an upstream MCP server in a registry. Its texts are claims of its publisher.
type Server struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
	// Status is "active" or "deprecated", or empty.
	Status     string `json:"status,omitempty"`
	Homepage   string `json:"homepage,omitempty"`
	Repository string `json:"repository,omitempty"`
	// Setups are the ways to configure the server.
	Setups []Setup `json:"setups"`
}

// CheckRegistry returns why base is no address of a registry of MCP servers.
func CheckRegistry(base string) error {
	u, ok := parseURL(base)
	if !ok || u.User != nil || u.RawQuery != "" || !address.IsConfidential(u) {
		return errors.New("must be an https URL, such as https://registry.modelcontextprotocol.io")
	}
	return nil
}

var apiVersion = lazyregexp.New(`^v[0-9]+(\.[0-9]+)?$`)

// Servers searches a registry of MCP servers, such as https://registry.modelcontextprotocol.io, for at most limit
// servers with every word of query, and reports whether there may be more. The registry's API is v0.1 unless base names
// a version. proxy may be nil.
//
// A registry searches for one text, so it gets the longest word; the others are compared with what it answers.
func Servers(ctx context.Context, base string, proxy *url.URL, query string, limit int) (found []Server,
	more bool, err error) {
	u, ok := parseURL(base)
	if !ok {
		return nil, false, CheckRegistry(base)
	}
	if !apiVersion().MatchString(path.Base(u.Path)) {
		u = u.JoinPath("v0.1")
	}
	u = u.JoinPath("servers")
	words := strings.Fields(query)
	parameters := url.Values{"limit": {strconv.Itoa(serversPage)}, "version": {"latest"}}
	if len(words) > 0 {
		parameters.Set("search", slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	seen := map[string]bool{}
	for range maxPages {
		u.RawQuery = parameters.Encode()
		_, body, err := get(ctx, u, proxy, http.Header{"Accept": {"application/json"}}, maxPage)
		if err != nil {
			return nil, false, err
		}
		servers, cursor, err := parseServers(body)
		if err != nil {
			return nil, false, err
		}
		for _, s := range servers {
			if seen[s.Name] || !s.matches(words) {
				continue
			}
			if len(found) == limit {
				return found, true, nil
			}
			seen[s.Name] = true
			found = append(found, s)
		}
		if cursor == "" || cursor == parameters.Get("cursor") {
			return found, false, nil
		}
		parameters.Set("cursor", cursor)
	}
	return found, true, nil
}

// matches reports whether every word occurs in the name or a text of the server.
func (s *Server) matches(words []string) bool {
	text := fold(s.Name + "\n" + s.Title + "\n" + s.Description)
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, fold(word)) })
}

// parseServers reads a page of a registry's list. Servers that are malformed, deleted or superseded are left out.
func parseServers(body []byte) (servers []Server, cursor string, err error) {
	var page struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata struct {
			NextCursor string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := strictjson.Unmarshal(body, &page); err != nil {
		return nil, "", fmt.Errorf("the response is not a list of MCP servers: %w", err)
	}
	for _, item := range page.Servers[:min(len(page.Servers), serversPage)] {
		var r struct {
			Server serverJSON `json:"server"`
			Meta   map[string]struct {
				Status   string `json:"status"`
				IsLatest *bool  `json:"isLatest"`
			} `json:"_meta"`
		}
		if strictjson.Unmarshal(item, &r) != nil {
			continue
		}
		official := r.Meta[officialMeta]
		if official.Status == "deleted" || official.IsLatest != nil && !*official.IsLatest {
			continue
		}
		if s := r.Server.server(); s != nil {
			s.Status = tidy(official.Status, maxTitle)
			servers = append(servers, *s)
		}
	}
	if len(page.Metadata.NextCursor) > maxCursor {
		return nil, "", fmt.Errorf("the response has a cursor of more than %d bytes", maxCursor)
	}
	return servers, page.Metadata.NextCursor, nil
}

// serverJSON is a server.json, as far as it matters here.
type serverJSON struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
	WebsiteURL  string `json:"websiteUrl"`
	Repository  struct {
		URL string `json:"url"`
	} `json:"repository"`
	Packages []packageJSON   `json:"packages"`
	Remotes  []transportJSON `json:"remotes"`
}

var serverName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9._-]+$`)

// server returns the server with its setups, or nil if its name breaks the rules of registries.
func (j *serverJSON) server() *Server {
	if len(j.Name) > maxName || !serverName().MatchString(j.Name) {
		return nil
	}
	s := &Server{Name: j.Name, Title: tidy(j.Title, maxTitle), Description: tidy(j.Description, maxDescription),
		Version: tidy(j.Version, maxName), Homepage: webPage(j.WebsiteURL), Repository: webPage(j.Repository.URL),
		Setups: []Setup{}}
	key := configName(j.Name)
	for _, remote := range j.Remotes[:min(len(j.Remotes), maxSetups)] {
		s.Setups = append(s.Setups, remote.setup(key))
	}
	for _, p := range j.Packages[:min(len(j.Packages), maxSetups)] {
		s.Setups = append(s.Setups, p.setup(key))
	}
	return s
}
