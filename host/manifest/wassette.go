package manifest

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/strictyaml"
)

// readPolicy reads a policy of wassette, the permissions that the component asks for. Environment variables become keys
// of the configuration, from which a component's environment is made. Limits of the policy are not read.
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
		v.Problem(`uri must start with "fs://"`)
		return
	}
	dir = strings.TrimRight(strings.TrimSuffix(dir, "**"), "/")
	name, err := nameOf(path.Base(dir))
	if err != nil {
		v.Problem(
			"uri must end in the name of a folder that begins with a letter: put a manifest beside the component " +
				"otherwise")
		return
	}
	f := draftFiles{Mount: name, Access: ReadOnly, Reason: "wassette's policy names " + dir}
	for _, a := range access {
		switch a {
		case "write":
			f.Access = ReadWrite
		case "read":
		default:
			v.Problem(`access must be a list of "read" and "write"`)
		}
	}
	if len(m.Permissions.Files) == maxItems {
		v.Problem("is one of more than %d folders", maxItems)
		return
	}
	for n := 2; slices.ContainsFunc(m.Permissions.Files,
		func(other draftFiles) bool { return other.Mount == f.Mount }); n++ {
		f.Mount = fmt.Sprintf("%s-%d", name, n)
	}
	m.Permissions.Files = append(m.Permissions.Files, f)
}

// readHost asks for requests to a host with any method. Without a scheme that is https, and http for addresses of this
// machine or its network.
func (m *draftManifest) readHost(v strictyaml.Value) {
	var host string
	v.Object(strictyaml.Fields{
		"host": strictyaml.String(&host),
		"cidr": func(v strictyaml.Value) {
			v.Problem("has no counterpart here: put a manifest beside the component that names the hosts")
		},
	})
	if host == "" {
		return
	}
	if !strings.Contains(host, "://") {
		scheme := "https://"
		if u, err := url.Parse("http://" + host); err == nil && address.IsPrivate(u.Hostname()) {
			scheme = "http://"
		}
		host = scheme + host
	}
	u, err := ParseBaseURL(host)
	if err != nil {
		v.Problem("host %v", err)
		return
	}
	u.Path = "/" // wassette compares the host alone
	m.Permissions.HTTP = append(m.Permissions.HTTP, draftHTTP{
		Name: fmt.Sprintf("host-%d", len(m.Permissions.HTTP)+1), URL: u.String(), Methods: methods,
		Reason: "wassette's policy names " + u.Host})
}

// readVariable declares a key of the configuration.
func (m *draftManifest) readVariable(v strictyaml.Value) {
	var key string
	v.Object(strictyaml.Fields{"key": strictyaml.String(&key)})
	if m.Config == nil {
		m.Config = map[string]draftConfigKey{}
	}
	m.Config[key] = draftConfigKey{"string", "Environment variable " + key}
}
