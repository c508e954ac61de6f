package grant

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/glob"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Digest returns a hash of permissions, "sha256:" and 64 hexadecimal digits. It does not depend on the order of lists,
// the reasons, the spelling of URLs and the migrations of the plugin's own database.
func Digest(p manifest.Permissions) string {
	var lines []string
	for _, h := range p.HTTP {
		lines = append(lines, line("http", h.Name, normalizeURL(h.URL), h.ConfigKey, methods(h), sorted(h.Paths)))
		if h.Credential != "" {
			lines = append(lines, line("credential", h.Name, h.Credential))
		}
	}
	for _, f := range p.Files {
		lines = append(lines, line("files", f.Mount, f.Write))
		if f.Roots {
			lines = append(lines, line("roots", f.Mount))
		}
	}
	if p.SQL != nil {
		lines = append(lines, line("sql", quota(p.SQL)))
	}
	if p.Exec != nil {
		lines = append(lines, line("exec", sorted(p.Exec.Programs)))
	}
	if p.Tools != nil {
		lines = append(lines, line("tools", sorted(p.Tools.Names)))
	}
	if remembers(p.State) {
		lines = append(lines, line("state", p.State))
	}
	if p.Limits != (manifest.Limits{}) {
		lines = append(lines, line("limits", p.Limits))
	}
	for tool, claims := range p.Claims {
		lines = append(lines, line("hints", tool, sorted(claims)))
	}
	sum := sha256.Sum256([]byte(strings.Join(sorted(lines), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func line(fields ...any) string {
	data, _ := json.Marshal(fields) // marshalling strings, lists of them and bools cannot fail
	return string(data)
}

// normalizeURL returns the canonical form of a base URL. An invalid one stays as it is.
func normalizeURL(base string) string {
	u, err := manifest.ParseBaseURL(base)
	if err != nil {
		return base
	}
	return strings.TrimSuffix(u.String(), "/")
}

// methods returns the sorted methods of a permission, with the default filled in.
func methods(p manifest.HTTPPermission) []string {
	if len(p.Methods) == 0 {
		return []string{"GET", "HEAD"}
	}
	return sorted(p.Methods)
}

// quota returns the size of the database of a permission, with the default filled in, in bytes.
func quota(p *manifest.SQLPermission) int64 { return cmp.Or(p.Quota, manifest.DefaultSQLQuota) }

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// Additions describes the permissions in asked beyond approved, in plain words in language ("ja"; else English). It is
// empty if there are none. Permissions are compared by name, like the operator's mappings: a permission with a new name
// is an addition, and so is everything that is not provably covered.
func Additions(approved, asked manifest.Permissions, language string) []string {
	w := wordingFor(language)
	var additions []string
	for _, p := range asked.HTTP {
		i := slices.IndexFunc(approved.HTTP, func(a manifest.HTTPPermission) bool { return a.Name == p.Name })
		if i < 0 {
			additions = append(additions, w.http(p, language))
			continue
		}
		additions = append(additions, w.httpAdditions(approved.HTTP[i], p)...)
	}
	for _, p := range asked.Files {
		i := slices.IndexFunc(approved.Files, func(a manifest.FilePermission) bool { return a.Mount == p.Mount })
		if i < 0 {
			additions = append(additions, w.file(p, language))
			continue
		}
		if p.Write && !approved.Files[i].Write {
			additions = append(additions, w.f(w.addWrite, p.Mount))
		}
		if p.Roots && !approved.Files[i].Roots {
			additions = append(additions, w.f(w.addRoots, p.Mount))
		}
	}
	switch {
	case asked.SQL == nil:
	case approved.SQL == nil:
		additions = append(additions, w.sql(asked.SQL, language))
	case quota(asked.SQL) > quota(approved.SQL):
		additions = append(additions, w.f(w.addQuota, strictyaml.FormatSize(quota(asked.SQL)),
			strictyaml.FormatSize(quota(approved.SQL))))
	}
	additions = append(additions, w.execAdditions(approved.Exec, asked.Exec, language)...)
	additions = append(additions, w.toolsAdditions(approved.Tools, asked.Tools, language)...)
	if slices.Index(manifest.States, asked.State) > max(0, slices.Index(manifest.States, approved.State)) {
		additions = append(additions, w.state(asked.State))
	}
	if text := w.limits(w.addLimits, asked.Limits, approved.Limits.Max(manifest.DefaultLimits), language); text != "" {
		additions = append(additions, text)
	}
	return append(additions, w.claimAdditions(approved.Claims, asked.Claims, language)...)
}

// remembers reports whether a call may read state of an earlier call.
func remembers(s manifest.State) bool { return s != "" && s != manifest.StateCall }

func (w wording) httpAdditions(approved, asked manifest.HTTPPermission) []string {
	var additions []string
	if !coversAddress(approved, asked) {
		additions = append(additions, w.f(w.addAddress, asked.Name, w.address(asked.URL), w.address(approved.URL)))
	}
	if more := difference(methods(asked), methods(approved)); len(more) > 0 {
		additions = append(additions, w.f(w.addMethods, asked.Name, strings.Join(more, ", ")))
	}
	if more := morePaths(approved, asked); len(more) > 0 {
		additions = append(additions, w.f(w.addPaths, asked.Name, strings.Join(more, ", ")))
	}
	if asked.ConfigKey != "" && asked.ConfigKey != approved.ConfigKey {
		additions = append(additions, w.f(w.addConfig, asked.Name, asked.ConfigKey))
	}
	if asked.Credential != "" && asked.Credential != approved.Credential {
		additions = append(additions, w.f(w.addCredential, asked.Name, asked.Credential, w.address(asked.URL)))
	}
	return additions
}

// coversAddress reports whether the URL of asked is under the approved one. Paths are relative to the URL, so if there
// are paths, the URLs must be equal.
func coversAddress(approved, asked manifest.HTTPPermission) bool {
	outer, err := manifest.ParseBaseURL(approved.URL)
	if err != nil {
		return false
	}
	inner, err := manifest.ParseBaseURL(asked.URL)
	if err != nil {
		return false
	}
	samePath := strings.TrimSuffix(outer.Path, "/") == strings.TrimSuffix(inner.Path, "/")
	return manifest.Covers(outer, inner) && (samePath || len(approved.Paths) == 0)
}

// morePaths returns the asked paths that no approved path covers.
func morePaths(approved, asked manifest.HTTPPermission) []string {
	if len(approved.Paths) == 0 {
		return nil
	}
	if len(asked.Paths) == 0 {
		return []string{"**"}
	}
	return slices.DeleteFunc(sorted(asked.Paths), func(path string) bool {
		return slices.ContainsFunc(approved.Paths, func(glob string) bool { return coversPath(glob, path) })
	})
}

// coversPath reports whether a glob covers path: it is equal, it matches everything, or it matches a path without
// wildcards.
func coversPath(pattern, path string) bool {
	if pattern == path || pattern == "**" {
		return true
	}
	return !strings.ContainsAny(path, `*?[{\`) && glob.Valid(pattern) && glob.Match(pattern, path)
}

// difference returns the elements of list that are not in known.
func difference(list, known []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(known, s) })
}

// sortedPermissions returns p without reasons and migrations, in a stable order.
func sortedPermissions(p manifest.Permissions) manifest.Permissions {
	s := manifest.Permissions{State: p.State, Limits: p.Limits, Claims: p.Claims}
	if !remembers(p.State) {
		s.State = ""
	}
	for _, h := range p.HTTP {
		h.Reason, h.Methods, h.Paths = nil, sorted(h.Methods), sorted(h.Paths)
		s.HTTP = append(s.HTTP, h)
	}
	for _, f := range p.Files {
		f.Reason = nil
		s.Files = append(s.Files, f)
	}
	if p.SQL != nil {
		s.SQL = &manifest.SQLPermission{Quota: quota(p.SQL)}
	}
	if p.Exec != nil {
		s.Exec = &manifest.ExecPermission{Programs: sorted(p.Exec.Programs)}
	}
	if p.Tools != nil {
		s.Tools = &manifest.ToolsPermission{Names: sorted(p.Tools.Names)}
	}
	slices.SortFunc(s.HTTP, func(a, b manifest.HTTPPermission) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Files, func(a, b manifest.FilePermission) int { return cmp.Compare(a.Mount, b.Mount) })
	return s
}

// Asks reports whether a plugin asks for anything. The hints of its tools are no permission.
func Asks(p manifest.Permissions) bool {
	return len(Additions(manifest.Permissions{Claims: p.Claims}, p, "en")) > 0
}
