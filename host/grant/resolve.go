package grant

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hako-run/hako/host/manifest"
)

// Resolve returns what a plugin may do: what its manifest asks for, as far as the consent goes, on the folders and addresses that
// the operator chose. Config holds the values that the operator set, without the manifest's defaults; a permission with a configKey
// is granted for the address set there.
//
// All that is missing is in the error: a mount that is mapped to no folder, programs that nobody has named, a configured address that is no base URL, one that
// contradicts the consent's mapping, or one that no credential may be sent to.
func Resolve(m *manifest.Manifest, c *Consent, config map[string]any) (Grants, error) {
	var g Grants
	var errs []error
	for _, p := range m.Permissions.HTTP {
		rule, err := c.httpRule(p, config)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: HTTP permission %s: %w", m.Name, p.Name, err))
		}
		g.HTTP = append(g.HTTP, rule)
	}
	for _, p := range m.Permissions.Files {
		mount, ok := c.Mounts[p.Mount]
		if !ok {
			errs = append(errs, notMapped(m.Name, p.Mount))
		}
		g.Mounts = append(g.Mounts, c.mount(p, mount))
	}
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
	if err := errors.Join(errs...); err != nil {
		return Grants{}, err
	}
	return g, nil
}

func (c *Consent) mount(p manifest.FilePermission, m Mount) Mount {
	m.Name = p.Mount
	m.Write = m.Write && p.Write
	m.Deny = slices.Clone(m.Deny)
	if !filepath.IsAbs(m.Path) {
		m.Path = filepath.Join(c.dir, m.Path)
	}
	return m
}

func (c *Consent) httpRule(p manifest.HTTPPermission, config map[string]any) (HTTPRule, error) {
	mapping := c.HTTP[p.Name]
	configured, err := configuredURL(p.ConfigKey, config)
	if err != nil {
		return HTTPRule{}, err
	}
	if configured != "" && mapping.URL != "" && spelling(configured) != spelling(mapping.URL) {
		return HTTPRule{}, fmt.Errorf("config.%s says %s and the consent says %s: make them agree, or remove the url from the consent",
			p.ConfigKey, configured, mapping.URL)
	}
	rule := HTTPRule{
		Name:    p.Name,
		URL:     cmp.Or(configured, mapping.URL, p.URL),
		Methods: methods(p),
		Paths:   slices.Clone(p.Paths),
		Private: mapping.Private,
	}
	if p.Credential != "" {
		rule.Credential = cmp.Or(mapping.Credential, p.Credential)
	}
	return rule, rule.checkCredential()
}

// checkCredential checks that the credential, if there is one, may be sent to the address.
func (r HTTPRule) checkCredential() error {
	base, err := manifest.ParseBaseURL(r.URL)
	if r.Credential == "" || err != nil {
		return nil // a manifest's and a consent's are valid
	}
	if err := manifest.CheckCredentialURL(base); err != nil {
		return fmt.Errorf("the credential %s cannot be sent to %s: the address %w", r.Credential, r.URL, err)
	}
	return nil
}

// configuredURL returns the address that the operator set under key, or "".
func configuredURL(key string, config map[string]any) (string, error) {
	value, set := config[key]
	if key == "" || !set {
		return "", nil
	}
	text, _ := value.(string)
	if _, err := manifest.ParseBaseURL(text); err != nil {
		return "", fmt.Errorf("config.%s %w", key, err)
	}
	return text, nil
}
