package grant

import (
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// State says whether a plugin may run.
type State string

// States of a plugin under the operator's consents.
const (
	// Pending waits for the operator.
	Pending State = "pending"
	// Approved may run.
	Approved State = "approved"
	// Revoked was approved once and may not run any more.
	Revoked State = "revoked"
)

// UpdateRule says what becomes of a new version of an approved plugin that asks for no more than the approved one.
type UpdateRule string

// Update rules. The zero value means Ask.
const (
	// Ask lets every new version wait for the operator.
	Ask UpdateRule = "ask"
	// SamePermissions lets such a version run.
	SamePermissions UpdateRule = "same-permissions"
)

// Decision is what the consents say about one version of a plugin.
type Decision struct {
	State State
	// Reason says why the plugin is pending or revoked, and what the operator can do. Empty if it is approved.
	Reason string
	// Additions are what a pending version asks for beyond the consent, in English.
	Additions []string
	// Consent is the one under which an approved plugin runs. Nil otherwise.
	Consent *Consent
	// Unrecorded reports that the update rule, and not the operator, approved this version: Consent is then still to be recorded
	// with File.Approve. The plugin may run before that, and also where the file cannot be written: the next decision is the same.
	Unrecorded bool
}

// Decide holds a plugin's version, by its valid manifest and the digest of its file, against the consents and the update rule.
func (f *File) Decide(m *manifest.Manifest, digest string, rule UpdateRule) Decision {
	c, ok := f.lookup(m.Name)
	if !ok {
		return pending(m, "plugin %s is new", m.Name)
	}
	if !c.RevokedAt.IsZero() {
		d := pending(m, "plugin %s was revoked on %s", m.Name, c.RevokedAt.Format(time.DateOnly))
		d.State = Revoked
		return d
	}
	asked := m.Permissions
	if c.Digest == digest { // this very file was approved, if by a version of hako that recorded neither
		asked.Limits, asked.Claims = c.Asked.Limits, c.Asked.Claims
	}
	if additions := Additions(c.Asked, asked, "en"); len(additions) > 0 {
		d := pending(m, "plugin %s %s asks for more than was approved: %s", m.Name, m.Version, strings.Join(additions, "; "))
		d.Additions = additions
		return d
	}
	switch {
	case c.Digest == digest:
		return Decision{State: Approved, Consent: &c}
	case rule == SamePermissions:
		update := c.updated(m, digest)
		return Decision{State: Approved, Consent: &update, Unrecorded: true}
	}
	return pending(m, "the file of plugin %s has changed since version %s was approved", m.Name, c.Version)
}

func pending(m *manifest.Manifest, format string, args ...any) Decision {
	return Decision{State: Pending, Reason: fmt.Sprintf(format, args...) + ": hako plugin approve " + m.Name}
}

// updated is the consent for a new version that asks for no more.
func (c Consent) updated(m *manifest.Manifest, digest string) Consent {
	c.Version, c.Digest, c.Asked = m.Version, digest, sortedPermissions(m.Permissions)
	c.ApprovedAt, c.ApprovedBy = time.Time{}, "update rule "+string(SamePermissions)
	mounts, http := map[string]Mount{}, map[string]HTTPMapping{}
	for _, p := range c.Asked.Files {
		mounts[p.Mount] = c.Mounts[p.Mount]
	}
	for _, p := range c.Asked.HTTP {
		if mapping, ok := c.HTTP[p.Name]; ok {
			if p.Credential == "" {
				mapping.Credential = ""
			}
			http[p.Name] = mapping
		}
	}
	c.Mounts, c.HTTP, c.Exec = mounts, http, execUpdated(c.Exec, c.Asked.Exec)
	return c
}
