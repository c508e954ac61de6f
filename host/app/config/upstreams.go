package config

import (
	"path/filepath"

	"github.com/hako-run/hako/host/upstream/mcpclient"
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

// defaultUpstreams is used if upstreams are enabled and no file is named. It is relative to the configuration's
// directory.
var defaultUpstreams = filepath.Join("config", "mcp_servers.json")

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
		return absolute(defaultUpstreams, c.Dir)
	}
	return c.Upstreams.File
}
