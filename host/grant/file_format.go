package grant

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// maxFile limits a consent file, in bytes.
const maxFile = 8 << 20

const header = `# What the operator of hako has consented to: which plugins may run, and what each of them may do.
#
# hako plugin approve and hako plugin revoke write this file; it may also be edited by hand, reviewed and kept in git.
# A consent holds for the file with that digest, and for what was asked when it was given. Relative paths start at the
# folder of this file. Comments are lost when hako writes the file: keep them in note.
`

// parse reads a consent file.
func parse(data []byte) (map[string]Consent, error) {
	consents, digests := map[string]Consent{}, map[string]string{}
	read := func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{"plugins": func(v strictyaml.Value) {
			v.Map(func(name string, v strictyaml.Value) {
				c, permissions := Consent{Name: name}, ""
				c.read(v, &permissions)
				consents[name], digests[name] = c, permissions
			})
		}})
	}
	check := func() error {
		var e strictyaml.Error
		for _, name := range sortedKeys(consents) {
			c, path := consents[name], strictyaml.Key("plugins", name)
			if digests[name] != Digest(c.Asked) {
				e.Add(path+".permissions", "is not the digest of the permissions under asked, so one of the two was "+
					"edited: hako plugin approve %s", name)
			} else if err := c.check(); err != nil {
				e.Add(path, "%v", err)
			}
		}
		return e.Err()
	}
	return consents, strictyaml.Read(data, maxFile, read, check)
}

func (c *Consent) read(v strictyaml.Value, permissions *string) {
	v.Object(strictyaml.Fields{
		"version":     strictyaml.String(&c.Version),
		"digest":      strictyaml.String(&c.Digest),
		"permissions": strictyaml.String(permissions),
		"approvedAt":  readTime(&c.ApprovedAt),
		"approvedBy":  strictyaml.String(&c.ApprovedBy),
		"revokedAt":   readTime(&c.RevokedAt),
		"revokedBy":   strictyaml.String(&c.RevokedBy),
		"note":        strictyaml.String(&c.Note),
		"asked":       func(v strictyaml.Value) { readAsked(v, &c.Asked) },
		"mounts":      readMounts(&c.Mounts),
		"http":        readMappings(&c.HTTP),
		"exec":        c.Exec.read,
	})
}

func readTime(dst *time.Time) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		t, err := time.Parse(time.RFC3339, text)
		if ok && err != nil {
			v.Problem(`must be a time such as "2026-01-02T15:04:05Z"`)
		}
		*dst = t
	}
}

func readAsked(v strictyaml.Value, p *manifest.Permissions) {
	v.Object(strictyaml.Fields{
		"state":  manifest.ReadState(&p.State),
		"limits": p.Limits.Read,
		"hints":  readClaims(&p.Claims),
		"http": strictyaml.List(&p.HTTP, func(v strictyaml.Value, p *manifest.HTTPPermission) {
			v.Object(strictyaml.Fields{
				"name":       strictyaml.String(&p.Name),
				"url":        strictyaml.String(&p.URL),
				"configKey":  strictyaml.String(&p.ConfigKey),
				"methods":    strictyaml.Strings(&p.Methods),
				"paths":      strictyaml.Strings(&p.Paths),
				"credential": strictyaml.String(&p.Credential),
			})
		}),
		"files": strictyaml.List(&p.Files, func(v strictyaml.Value, p *manifest.FilePermission) {
			v.Object(strictyaml.Fields{
				"mount":  strictyaml.String(&p.Mount),
				"access": readAccess(&p.Write),
				"roots":  strictyaml.Bool(&p.Roots),
			})
		}),
		"sql": func(v strictyaml.Value) {
			p.SQL = &manifest.SQLPermission{}
			v.Object(strictyaml.Fields{"quota": strictyaml.Size(&p.SQL.Quota)})
		},
		"exec": func(v strictyaml.Value) {
			p.Exec = &manifest.ExecPermission{}
			v.Object(strictyaml.Fields{"programs": strictyaml.Strings(&p.Exec.Programs)})
		},
		"tools": func(v strictyaml.Value) {
			p.Tools = &manifest.ToolsPermission{}
			v.Object(strictyaml.Fields{"names": strictyaml.Strings(&p.Tools.Names)})
		},
	})
}

func readAccess(write *bool) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		if *write = text == manifest.ReadWrite; ok && !*write && text != manifest.ReadOnly {
			v.Problem("must be %q or %q", manifest.ReadOnly, manifest.ReadWrite)
		}
	}
}

func readMounts(dst *map[string]Mount) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string]Mount{}
		v.Map(func(name string, v strictyaml.Value) {
			m := Mount{Name: name}
			v.Object(strictyaml.Fields{
				"path":   strictyaml.String(&m.Path),
				"access": readAccess(&m.Write),
				"deny":   strictyaml.Strings(&m.Deny),
				"quota":  strictyaml.Size(&m.Quota),
			})
			(*dst)[name] = m
		})
	}
}

func readMappings(dst *map[string]HTTPMapping) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string]HTTPMapping{}
		v.Map(func(name string, v strictyaml.Value) {
			var m HTTPMapping
			v.Object(strictyaml.Fields{
				"url":        strictyaml.String(&m.URL),
				"private":    strictyaml.Bool(&m.Private),
				"credential": strictyaml.String(&m.Credential),
			})
			(*dst)[name] = m
		})
	}
}

func (e *Exec) read(v strictyaml.Value) {
	var ports []int
	v.Object(strictyaml.Fields{
		"programs":   strictyaml.Strings(&e.Programs),
		"env":        strictyaml.Strings(&e.Env),
		"connect":    strictyaml.Strings(&e.Connect),
		"ports":      strictyaml.List(&ports, func(v strictyaml.Value, port *int) { strictyaml.Count(port)(v) }),
		"unconfined": strictyaml.Bool(&e.Unconfined),
	})
	for _, port := range ports {
		if port > math.MaxUint16 {
			v.Problem("ports are numbers from 1 to 65535")
			continue
		}
		e.Ports = append(e.Ports, uint16(port))
	}
}

// format returns the text of a consent file. Equal consents give equal bytes.
func format(consents map[string]Consent) ([]byte, error) {
	var plugins strictyaml.Mapping
	for _, name := range sortedKeys(consents) {
		c := consents[name]
		plugins = append(plugins, strictyaml.Entry{Key: name, Value: c.mapping()})
	}
	return strictyaml.Write(strictyaml.Mapping{{Key: "plugins", Value: plugins}}, header)
}

func (c *Consent) mapping() strictyaml.Mapping {
	asked := sortedPermissions(c.Asked)
	return strictyaml.Mapping{
		{Key: "version", Value: c.Version},
		{Key: "digest", Value: c.Digest},
		{Key: "permissions", Value: Digest(asked)},
		{Key: "approvedAt", Value: formatTime(c.ApprovedAt)},
		{Key: "approvedBy", Value: c.ApprovedBy},
		{Key: "revokedAt", Value: formatTime(c.RevokedAt)},
		{Key: "revokedBy", Value: c.RevokedBy},
		{Key: "note", Value: c.Note},
		{Key: "asked", Value: formatAsked(asked)},
		{Key: "mounts", Value: formatMounts(c.Mounts)},
		{Key: "http", Value: formatMappings(c.HTTP)},
		{Key: "exec", Value: c.Exec.mapping()},
	}
}

func (e *Exec) mapping() strictyaml.Mapping {
	if len(e.Programs) == 0 {
		return nil
	}
	return strictyaml.Mapping{
		{Key: "programs", Value: e.Programs}, {Key: "env", Value: e.Env}, {Key: "connect", Value: e.Connect},
		{Key: "ports", Value: e.Ports}, {Key: "unconfined", Value: e.Unconfined},
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func formatAsked(p manifest.Permissions) strictyaml.Mapping {
	var http, files []strictyaml.Mapping
	for _, h := range p.HTTP {
		http = append(http, strictyaml.Mapping{
			{Key: "name", Value: h.Name}, {Key: "url", Value: h.URL}, {Key: "configKey", Value: h.ConfigKey},
			{Key: "methods", Value: h.Methods}, {Key: "paths", Value: h.Paths},
			{Key: "credential", Value: h.Credential},
		})
	}
	for _, f := range p.Files {
		file := strictyaml.Mapping{{Key: "mount", Value: f.Mount}, {Key: "access", Value: access(f.Write)}}
		if f.Roots {
			file = append(file, strictyaml.Entry{Key: "roots", Value: true})
		}
		files = append(files, file)
	}
	var asked strictyaml.Mapping
	if len(http) > 0 {
		asked = append(asked, strictyaml.Entry{Key: "http", Value: http})
	}
	if len(files) > 0 {
		asked = append(asked, strictyaml.Entry{Key: "files", Value: files})
	}
	if p.SQL != nil {
		asked = append(asked, strictyaml.Entry{Key: "sql",
			Value: strictyaml.Mapping{{Key: "quota", Value: strictyaml.FormatSize(quota(p.SQL))}}})
	}
	if p.Exec != nil {
		asked = append(asked, strictyaml.Entry{Key: "exec",
			Value: strictyaml.Mapping{{Key: "programs", Value: sorted(p.Exec.Programs)}}})
	}
	if p.Tools != nil {
		asked = append(asked, strictyaml.Entry{Key: "tools",
			Value: strictyaml.Mapping{{Key: "names", Value: sorted(p.Tools.Names)}}})
	}
	if remembers(p.State) {
		asked = append(asked, strictyaml.Entry{Key: "state", Value: string(p.State)})
	}
	if p.Limits != (manifest.Limits{}) {
		asked = append(asked, strictyaml.Entry{Key: "limits", Value: formatLimits(p.Limits)})
	}
	if len(p.Claims) > 0 {
		asked = append(asked, strictyaml.Entry{Key: "hints", Value: formatClaims(p.Claims)})
	}
	return asked
}

func access(write bool) string {
	if write {
		return manifest.ReadWrite
	}
	return manifest.ReadOnly
}

func formatMounts(mounts map[string]Mount) strictyaml.Mapping {
	var list strictyaml.Mapping
	for _, name := range sortedKeys(mounts) {
		m := mounts[name]
		quota := ""
		if m.Quota > 0 {
			quota = strictyaml.FormatSize(m.Quota)
		}
		list = append(list, strictyaml.Entry{Key: name, Value: strictyaml.Mapping{
			{Key: "path", Value: m.Path}, {Key: "access", Value: access(m.Write)}, {Key: "deny", Value: m.Deny},
			{Key: "quota", Value: quota},
		}})
	}
	return list
}

func formatMappings(mappings map[string]HTTPMapping) strictyaml.Mapping {
	var list strictyaml.Mapping
	for _, name := range sortedKeys(mappings) {
		m := mappings[name]
		if m == (HTTPMapping{}) {
			continue
		}
		list = append(list, strictyaml.Entry{Key: name, Value: strictyaml.Mapping{
			{Key: "url", Value: m.URL}, {Key: "private", Value: m.Private}, {Key: "credential", Value: m.Credential},
		}})
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
