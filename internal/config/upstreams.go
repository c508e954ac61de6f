package config

import (
	"path/filepath"

	"github.com/hako-run/hako/host/mcpclient"
)

// Upstreams configures the upstream MCP servers.
type Upstreams struct {
	// File is in the form that MCP clients share; package mcpclient reads it.
	File string
	// Enabled is false to do without them.
	Enabled bool
	// Start is eager or lazy, for servers without a setting of their own.
	Start string
}

// usualUpstreams is the file where upstream servers are enabled and none is named, relative to that of the
// configuration.
var usualUpstreams = filepath.Join("config", "mcp_servers.json")

func (u *Upstreams) table() []setting {
	return []setting{
		{key: "upstreams", value: &u.File, variables: []string{"MCP_SERVERS_CONFIG"}, path: true},
		{key: "upstreamsStart", value: &u.Start, fallback: string(mcpclient.Eager),
			oneOf: []string{string(mcpclient.Eager), string(mcpclient.Lazy)}},
		{key: "upstreamsEnabled", value: &u.Enabled, fallback: "true", variables: []string{"MCP_ENABLED"}},
	}
}

// UpstreamsFile is the file with the upstream servers; empty means that there are none.
func (c *Config) UpstreamsFile() string {
	switch {
	case !c.Upstreams.Enabled:
		return ""
	case c.Upstreams.File == "" && c.Origin("upstreamsEnabled") != OriginDefault:
		return absolute(usualUpstreams, c.Dir)
	}
	return c.Upstreams.File
}
