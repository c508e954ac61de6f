package grant

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hako-run/hako/host/manifest"
)

// Resolve returns the grants of a plugin: the permissions in its manifest that the consent covers, with the folders and
// addresses that the operator chose. config holds the values that the operator set, without the manifest's defaults. A
// permission with a configKey is granted for the address set there. A mount that asks for roots gets them.
// Files of roots.Hidden are hidden in every mount.
//
// The error joins all problems: a mount without a folder or with a hidden one, no named programs, a configured address
// that is no base URL, that contradicts the consent, or that a credential must not be sent to.
func Resolve(m *manifest.Manifest, c *Consent, config map[string]any, roots Roots) (Grants, error) {
	var g Grants
	var errs []error
	for _, p := range m.Permissions.HTTP {
		rule, text := c.httpRule(p, config)
		rule.Placeholder = m.Placeholder(p.Credential)
		if text != nil {
			errs = append(errs, httpError(m.Name, p.Name, "url", text))
		}
		g.HTTP = append(g.HTTP, rule)
	}
	for _, p := range m.Permissions.Files {
		mount, ok := c.Mounts[p.Mount]
		if !ok {
			errs = append(errs, notMapped(m.Name, p.Mount))
		}
		g.Mounts = append(g.Mounts, c.mount(p, mount))
		if dir := c.folder(mount.Path); ok && roots.hides(dir) {
			errs = append(errs, mountError(m.Name, p.Mount, bilingual(
				"hako keeps its own files in %s: choose another folder",
				"%s には hako 自身のファイルがあります。別のフォルダーを指定してください", dir)))
		}
	}
	more, err := roots.mounts(m.Permissions.Files, g.Mounts)
	if err != nil {
		errs = append(errs, fmt.Errorf("plugin %s: %w", m.Name, err))
	}
	for i := range g.Mounts {
		g.Mounts[i].Deny = append(g.Mounts[i].Deny, roots.denied(g.Mounts[i].Path)...)
	}
	g.Mounts = append(g.Mounts, more...)
	if p := m.Permissions.SQL; p != nil {
		g.SQL = &SQL{Migrations: slices.Clone(p.Migrations), Quota: quota(p)}
	}
	if p := m.Permissions.Exec; p != nil {
		exec, err := c.exec(m.Name, p)
		if err != nil {
			errs = append(errs, err)
		}
		g.Exec = exec
	}
	if p := m.Permissions.Tools; p != nil {
		g.Tools = sorted(p.Names)
	}
	if err := errors.Join(errs...); err != nil {
		return Grants{}, err
	}
	return g, nil
}

func (c *Consent) mount(p manifest.FilePermission, m Mount) Mount {
	m.Name = p.Mount
	m.Write = m.Write && p.Write
	m.Deny = slices.Clone(m.Deny)
	m.Path = c.folder(m.Path)
	return m
}

// folder returns the absolute path of a folder in the consent.
func (c *Consent) folder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir, path)
}

// httpRule returns the rule for a permission, or why its address is invalid.
func (c *Consent) httpRule(p manifest.HTTPPermission, config map[string]any) (HTTPRule, manifest.Text) {
	mapping := c.HTTP[p.Name]
	configured, text := configuredURL(p.ConfigKey, config)
	if text != nil {
		return HTTPRule{}, text
	}
	if configured != "" && mapping.URL != "" && normalizeURL(configured) != normalizeURL(mapping.URL) {
		return HTTPRule{}, bilingual("config.%s is %s, but the consent has %s: make them match, or remove the url "+
			"from the consent",
			"config.%s は %s ですが、承認の記録は %s です。一致させるか、承認の記録から URL を除いてください", p.ConfigKey, configured, mapping.URL)
	}
	rule := HTTPRule{
		Name:    p.Name,
		URL:     cmp.Or(configured, mapping.URL, p.URL),
		Methods: methods(p),
		Paths:   slices.Clone(p.Paths),
		Private: mapping.Private,
	}
	if moved(p.URL, rule.URL) {
		rule.Asked = p.URL
	}
	if p.Credential != "" {
		rule.Credential = cmp.Or(mapping.Credential, p.Credential)
	}
	return rule, rule.checkCredential()
}

// checkCredential returns why the credential must not be sent to the address, or nil.
func (r HTTPRule) checkCredential() manifest.Text {
	base, err := manifest.ParseBaseURL(r.URL)
	if r.Credential == "" || err != nil {
		return nil // URLs of manifests and consents are valid
	}
	if err := manifest.CheckCredentialURL(base); err != nil {
		return bilingual("the credential %s cannot be sent to %s: the address %v", "認証情報 %s を %s に送ることはできません (%v)",
			r.Credential, r.URL, err)
	}
	return nil
}

// configuredURL returns the address that the operator configured under key, or "".
func configuredURL(key string, config map[string]any) (string, manifest.Text) {
	value, set := config[key]
	if key == "" || !set {
		return "", nil
	}
	text, _ := value.(string)
	if _, err := manifest.ParseBaseURL(text); err != nil {
		return "", bilingual("config.%s %v", "config.%s が正しい URL ではありません (%v)", key, err)
	}
	return text, nil
}
