package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hako-run/hako/host/manifest"
)

// Proposal is a consent that an operator may give to one version of a plugin.
type Proposal struct {
	Manifest *manifest.Manifest
	// Consent is the consent to record. Folders, addresses and programs in it may still be changed.
	Consent Consent
	// Before is the consent that it replaces, which may be revoked. Nil if there is none.
	Before *Consent
	// Quota is the quota, in bytes, of mounts that Settle makes writable. Zero means DefaultMountQuota.
	Quota int64
	// Roots are the roots of Grants.
	Roots Roots
}

// Propose returns a proposal for the plugin file with the digest; by names the person who would approve it. The
// settings of an earlier consent in consents are kept as far as the plugin still asks for them. Without such settings,
// the programs that the plugin names are granted.
func Propose(consents []Consent, m *manifest.Manifest, digest, by string) *Proposal {
	p := &Proposal{Manifest: m, Consent: Consent{
		Name: m.Name, Version: m.Version, Digest: digest, Asked: m.Permissions, ApprovedBy: by,
		Mounts: map[string]Mount{}, HTTP: map[string]HTTPMapping{},
	}}
	if i := slices.IndexFunc(consents, func(c Consent) bool { return c.Name == m.Name }); i >= 0 {
		p.Before = &consents[i]
		p.copyChoices(p.Before)
	}
	if asked := m.Permissions.Exec; asked != nil && len(p.Consent.Exec.Programs) == 0 &&
		asked.Programs[0] != manifest.AnyProgram {
		p.Consent.Exec.Programs = asked.Programs
	}
	return p
}

// copyChoices copies the settings of the earlier consent.
func (p *Proposal) copyChoices(before *Consent) {
	c := &p.Consent
	c.Note, c.dir = before.Note, before.dir
	if c.Asked.Exec != nil {
		c.Exec = before.Exec
	}
	for _, asked := range c.Asked.Files {
		if mount, ok := before.Mounts[asked.Mount]; ok {
			c.Mounts[asked.Mount] = mount
		}
	}
	for _, asked := range c.Asked.HTTP {
		mapping, ok := before.HTTP[asked.Name]
		if !ok {
			continue
		}
		if asked.Credential == "" {
			mapping.Credential = ""
		}
		c.HTTP[asked.Name] = mapping
	}
}

// Updates reports whether an earlier consent is in force.
func (p *Proposal) Updates() bool { return p.Before != nil && p.Before.RevokedAt.IsZero() }

// Grants returns what the plugin would get; see Resolve for config and errors.
func (p *Proposal) Grants(config map[string]any) (Grants, error) {
	return Resolve(p.Manifest, &p.Consent, config, p.Roots)
}

// Version returns a hash over the file, its permissions and the grants g. Proposals with the same version approve the
// same.
func (p *Proposal) Version(g Grants) string {
	hash := sha256.New()
	// Encoding plain data cannot fail.
	_ = json.NewEncoder(hash).Encode([]any{p.Consent.Name, p.Consent.Digest, sortedPermissions(p.Consent.Asked), g})
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
