package manifest

import (
	"path"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// readPolicy reads a policy of wassette, the permissions that the component asks for. Environment variables become keys
// of the configuration, from which a component's environment is made. Limits of the policy are not read. An allowed
// entry without counterpart is left out, which asks for less; a denied one is an error, because without it the component
// would ask for more.
//
// Source: https://github.com/microsoft/wassette, docs/reference/permissions.md.
func (m *draftManifest) readPolicy(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"$schema":     strictyaml.Ignore,
		"version":     strictyaml.Ignore,
		"description": strictyaml.Ignore, // of the policy
		"permissions": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"storage":     allowed(m.readStorage),
				"network":     allowed(m.readHost),
				"environment": allowed(m.readVariable),
				"resources":   strictyaml.Ignore,
				"runtime":     strictyaml.Ignore,
				"ipc":         strictyaml.Ignore,
			})
		},
	})
}

// allowed reads the list of what a permission allows.
func allowed(read func(strictyaml.Value)) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{
			"allow": func(v strictyaml.Value) { v.List(func(_ int, item strictyaml.Value) { read(item) }) },
			"deny": func(v strictyaml.Value) {
				v.Problem("has no counterpart here: put a manifest beside the component that asks for what it may have")
			},
		})
	}
}

// readStorage asks for a mount named after the last element of the path.
func (m *draftManifest) readStorage(v strictyaml.Value) {
	var uri string
	var access []string
	v.Object(strictyaml.Fields{"uri": strictyaml.String(&uri), "access": strictyaml.Strings(&access)})
	dir, ok := strings.CutPrefix(uri, "fs://")
	if !ok {
		m.leave(v, `uri %q does not start with "fs://"`, uri)
		return
	}
	dir = strings.TrimRight(strings.TrimSuffix(dir, "**"), "/")
	name, err := nameOf(path.Base(dir))
	if err != nil {
		m.leave(v, "uri %q does not end in the name of a folder that begins with a letter", uri)
		return
	}
	f := draftFiles{Mount: name, Access: ReadOnly, Reason: "wassette's policy names " + dir}
	for _, a := range access {
		switch a {
		case "write":
			f.Access = ReadWrite
		case "read":
		default:
			m.leave(v, `access %q is neither "read" nor "write"`, a)
			return
		}
	}
	m.addFiles(v, f)
}

// readHost asks for requests to a host.
func (m *draftManifest) readHost(v strictyaml.Value) {
	var host string
	v.Object(strictyaml.Fields{
		"host": strictyaml.String(&host),
		"cidr": func(v strictyaml.Value) { m.leave(v, "addresses are not granted by their range: name the hosts") },
	})
	if host != "" {
		m.addHost(v, host, "wassette's policy")
	}
}

// readVariable declares a key of the configuration.
func (m *draftManifest) readVariable(v strictyaml.Value) {
	var key string
	v.Object(strictyaml.Fields{"key": strictyaml.String(&key)})
	if !configName().MatchString(key) {
		m.leave(v, "%q cannot be a key of the configuration", key)
		return
	}
	m.addKey(v, key, "Environment variable "+key)
}
