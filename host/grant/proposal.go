package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hako-run/hako/host/manifest"
)

// Proposal is a yes that an operator may give to one version of a plugin: what would be recorded, and what there is to know before.
type Proposal struct {
	Manifest *manifest.Manifest
	// Consent is what would be recorded. Who proposes may still settle folders, addresses and programs in it.
	Consent Consent
	// Before is the consent that it replaces, revoked or not. Nil if there is none.
	Before *Consent
	// Quota is that of mounts which Settle makes writable, in bytes. Zero means DefaultMountQuota.
	Quota int64
}

// Propose returns a proposal for the plugin whose file has the digest, with by as the one who would say yes. What an earlier consent, one of
// consents, settled is kept as far as the plugin still asks for it. Programs that it asks for by name are granted where nothing else is settled.
func Propose(consents []Consent, m *manifest.Manifest, digest, by string) *Proposal {
	p := &Proposal{Manifest: m, Consent: Consent{
		Name: m.Name, Version: m.Version, Digest: digest, Asked: m.Permissions, ApprovedBy: by,
		Mounts: map[string]Mount{}, HTTP: map[string]HTTPMapping{},
	}}
	if i := slices.IndexFunc(consents, func(c Consent) bool { return c.Name == m.Name }); i >= 0 {
		p.Before = &consents[i]
		p.keep(p.Before)
	}
	if asked := m.Permissions.Exec; asked != nil && len(p.Consent.Exec.Programs) == 0 && asked.Programs[0] != manifest.AnyProgram {
		p.Consent.Exec.Programs = asked.Programs
	}
	return p
}

// keep takes over what the consent before settled.
func (p *Proposal) keep(before *Consent) {
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

// Updates reports whether an earlier yes is in force, whose version Before then has.
func (p *Proposal) Updates() bool { return p.Before != nil && p.Before.RevokedAt.IsZero() }

// Grants is what the plugin gets with the yes; see Resolve for config and errors.
func (p *Proposal) Grants(config map[string]any) (Grants, error) {
	return Resolve(p.Manifest, &p.Consent, config)
}

// Version stands for all that the yes is about: the file, what it asks for, and what it gets, g. Two proposals with one version are alike.
func (p *Proposal) Version(g Grants) string {
	hash := sha256.New()
	// The parts are plain data, so encoding them cannot fail.
	_ = json.NewEncoder(hash).Encode([]any{p.Consent.Name, p.Consent.Digest, sortedPermissions(p.Consent.Asked), g})
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
